#include "calls.h"

#include <nanobind/stl/string.h>

#include <cerrno>

extern "C" {
#include "base/failure.h"
}

namespace nb = nanobind;

nb::object view(const void *address, size_t bytes) {
    static char nothing;
    /* Python has no views of NULL. */
    char *const start = address == nullptr ? &nothing : static_cast<char *>(const_cast<void *>(address));
    PyObject *const made = PyMemoryView_FromMemory(start, static_cast<Py_ssize_t>(bytes), PyBUF_WRITE);
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

void Calls::throw_interruption() {
    if (interruption_ == nullptr) return;
    nb::python_error error = std::move(*interruption_);
    interruption_.reset();
    throw error;
}

void Calls::keep_interruption(nb::python_error &&error) {
    interruption_ = std::make_unique<nb::python_error>(std::move(error));
}

supply_status_t Calls::fail(failure *failure, const char *operation, const nb::python_error &error) {
    std::string text = "an exception without a text";
    try {
        text = nb::cast<std::string>(error.type().attr("__name__")) + ": " + nb::str(error.value()).c_str();
    } catch (const std::exception &) {
        /* The exception's own __str__ has raised. */
    }
    errno = 0;
    const supply_status_t status =
        supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s failed in %s: %s", what_, operation, text.c_str());
    failure_text_ = failure->text;
    return status;
}

/* A signal that arrives now must not leave it unknown whether the operation has begun, so its handler runs first. */
supply_status_t Calls::begin(failure *failure, const char *operation, const Call &call, int *number) {
    nb::gil_scoped_acquire acquired;
    if (!is_waiting_ && PyErr_CheckSignals() != 0) keep_interruption(nb::python_error());
    try {
        const nb::object returned = call(object_);
        if (number != nullptr) *number = nb::cast<int>(returned);
        return SUPPLY_OK;
    } catch (nb::python_error &error) {
        fail(failure, operation, error);
        if (!error.matches(PyExc_Exception)) keep_interruption(std::move(error));
        return SUPPLY_ERROR_SYSTEM;
    }
}

supply_status_t Calls::ask(failure *failure, const char *operation, const Call &call) {
    nb::gil_scoped_acquire acquired;
    try {
        if (is_waiting_ && PyErr_CheckSignals() != 0) {
            keep_interruption(nb::python_error());
            return fail(failure, operation, *interruption_);
        }
        const int answer = PyObject_IsTrue(call(object_).ptr());
        if (answer < 0) throw nb::python_error();
        return answer != 0 ? SUPPLY_OK : SUPPLY_AGAIN;
    } catch (nb::python_error &error) {
        const bool is_interruption = !error.matches(PyExc_Exception);
        const bool ends = is_waiting_ || !is_interruption;
        if (ends) fail(failure, operation, error);
        if (is_interruption) keep_interruption(std::move(error));
        return ends ? SUPPLY_ERROR_SYSTEM : SUPPLY_AGAIN;
    }
}

void Calls::free(void *context, bool pending) {
    auto *const held = static_cast<std::shared_ptr<Calls> *>(context);
    nb::gil_scoped_acquire acquired;
    Calls &calls = **held;
    if (!pending) {
        try {
            calls.object_.attr("close")();
        } catch (nb::python_error &error) {
            error.discard_as_unraisable((std::string("the end of ") + calls.what_).c_str());
        }
    } else {
        calls.object_.release();
    }
    delete held;
}

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

supply_status_t fail_by_exception(failure *failure, const char *what, const char *operation,
                                  const nb::python_error &error) {
    std::string text = "an exception without a text";
    try {
        text = nb::cast<std::string>(error.type().attr("__name__")) + ": " + nb::str(error.value()).c_str();
    } catch (const std::exception &) {
        /* The exception's own __str__ has raised. */
    }
    errno = 0;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s failed in %s: %s", what, operation, text.c_str());
}

bool is_true(const nb::object &object) {
    const int answer = PyObject_IsTrue(object.ptr());
    if (answer < 0) throw nb::python_error();
    return answer != 0;
}

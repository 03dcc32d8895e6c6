#include "calls.h"

#include <nanobind/stl/string.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace nb = nanobind;

namespace {

/* Between ranks that are ready, an operation takes less time than the shortest sleep. */
constexpr unsigned kYields = 30;
constexpr unsigned kShortestPauseMicroseconds = 50;
constexpr unsigned kLongestPauseMicroseconds = 1000;

/* A memoryview of the library's memory. Writable also for what is sent: PyTorch warns of memory that is not. */
nb::object view(const void *address, size_t bytes) {
    static char nothing;
    /* Python has no views of NULL. */
    char *const start = address == nullptr ? &nothing : static_cast<char *>(const_cast<void *>(address));
    PyObject *const made = PyMemoryView_FromMemory(start, static_cast<Py_ssize_t>(bytes), PyBUF_WRITE);
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

} // namespace

Calls::Calls(nb::object object, const char *what)
    : object_(std::move(object)), what_(what), rank_(nb::cast<int>(object_.attr("rank"))),
      ranks_(nb::cast<int>(object_.attr("ranks"))), splits_(nb::hasattr(object_, "split")),
      any_thread_(nb::cast<bool>(nb::getattr(object_, "any_thread", nb::bool_(false)))) {}

transport Calls::functions() {
    return {rank_,
            ranks_,
            any_thread_,
            new std::shared_ptr<Calls>(shared_from_this()),
            allgather,
            alltoall,
            alltoallv,
            test,
            splits_ ? split : nullptr,
            nullptr,
            free};
}

/* The interpreter's lock covers the counts, which begin() sets in any thread. */
void Calls::pause() {
    const bool yields = yields_ > 0;
    const unsigned microseconds = pause_microseconds_;
    if (yields)
        yields_--;
    else
        pause_microseconds_ = std::min(2 * pause_microseconds_, kLongestPauseMicroseconds);
    nb::gil_scoped_release released;
    if (yields)
        sched_yield();
    else
        usleep(microseconds);
}

void Calls::on_end(void *context, void (*end)(void *argument), void *argument) {
    Calls &calls = in(context);
    nb::gil_scoped_acquire acquired;
    try {
        /* A forked child has no thread, and may end as its parent does. */
        calls.end_ = nb::cpp_function([end, argument, process = getpid()] {
            nb::gil_scoped_release released;
            if (getpid() == process) end(argument);
        });
        nb::module_::import_("atexit").attr("register")(calls.end_);
        if (nb::hasattr(calls.object_, "on_end")) calls.object_.attr("on_end")(calls.end_);
    } catch (nb::python_error &error) {
        error.discard_as_unraisable("the beginning of an exchange");
    }
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
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s failed in %s: %s", what_, operation, text.c_str());
}

/* A signal that arrives now must not leave it unknown whether the operation has begun, so its handler runs first. */
supply_status_t Calls::begin(failure *failure, const char *name, int *operation, const Call &call) {
    *operation = NO_OPERATION;
    nb::gil_scoped_acquire acquired;
    yields_ = kYields;
    pause_microseconds_ = kShortestPauseMicroseconds;
    if (!whole().is_waiting_ && PyErr_CheckSignals() != 0) whole().keep_interruption(nb::python_error());
    try {
        const long number = PyLong_AsLong(call(object_).ptr());
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        *operation = static_cast<int>(number);
        return SUPPLY_OK;
    } catch (nb::python_error &error) {
        fail(failure, name, error);
        if (!error.matches(PyExc_Exception)) whole().keep_interruption(std::move(error));
        return SUPPLY_ERROR_SYSTEM;
    }
}

supply_status_t Calls::allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                 failure *failure) {
    Calls &calls = in(context);
    return calls.begin(failure, "allgather", operation, [&](const nb::object &object) {
        return object.attr("allgather")(view(send, bytes), view(receive, bytes * calls.ranks_));
    });
}

supply_status_t Calls::alltoall(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                failure *failure) {
    Calls &calls = in(context);
    return calls.begin(failure, "alltoall", operation, [&](const nb::object &object) {
        const size_t all = bytes * calls.ranks_;
        return object.attr("alltoall")(view(send, all), view(receive, all));
    });
}

supply_status_t Calls::alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                 const part *receive_parts, int *operation, failure *failure) {
    Calls &calls = in(context);
    return calls.begin(failure, "alltoallv", operation, [&](const nb::object &object) {
        return object.attr("alltoallv")(calls.view_of(send, send_parts), calls.tuples(send_parts),
                                        calls.view_of(receive, receive_parts), calls.tuples(receive_parts));
    });
}

nb::object Calls::view_of(const void *start, const part *parts) const {
    size_t end = 0;
    for (int i = 0; i < ranks_; i++) end = std::max(end, parts[i].offset + parts[i].bytes);
    return view(start, end);
}

nb::list Calls::tuples(const part *parts) const {
    nb::list list;
    for (int i = 0; i < ranks_; i++) list.append(nb::make_tuple(parts[i].offset, parts[i].bytes));
    return list;
}

supply_status_t Calls::test(void *context, int operation, failure *failure) {
    Calls &calls = in(context), &whole = calls.whole();
    nb::gil_scoped_acquire acquired;
    try {
        if (whole.is_waiting_ && PyErr_CheckSignals() != 0) {
            whole.keep_interruption(nb::python_error());
            return calls.fail(failure, "test", *whole.interruption_);
        }
        const int answer = PyObject_IsTrue(calls.object_.attr("test")(operation).ptr());
        if (answer < 0) throw nb::python_error();
        return answer != 0 ? SUPPLY_OK : SUPPLY_AGAIN;
    } catch (nb::python_error &error) {
        const bool is_interruption = !error.matches(PyExc_Exception);
        const bool ends = whole.is_waiting_ || !is_interruption;
        if (ends) calls.fail(failure, "test", error);
        if (is_interruption) whole.keep_interruption(std::move(error));
        return ends ? SUPPLY_ERROR_SYSTEM : SUPPLY_AGAIN;
    }
}

supply_status_t Calls::split(void *context, const int *of, int ranks, int rank, struct ::transport *part,
                             failure *failure) {
    Calls &calls = in(context);
    nb::gil_scoped_acquire acquired;
    try {
        nb::list list;
        for (int i = 0; i < ranks; i++) list.append(of[i]);
        const auto made = std::make_shared<Calls>(calls.object_.attr("split")(list), calls.what_);
        made->whole_ = calls.whole().shared_from_this();
        *part = made->functions();
        if (made->rank_ == rank && made->ranks_ == ranks) return SUPPLY_OK;
        free(part->context, false);
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s: split() has other ranks", calls.what_);
    } catch (nb::python_error &error) {
        calls.fail(failure, "split", error);
        if (!error.matches(PyExc_Exception)) calls.whole().keep_interruption(std::move(error));
        return SUPPLY_ERROR_SYSTEM;
    }
}

void Calls::free(void *context, bool pending) {
    auto *const held = static_cast<std::shared_ptr<Calls> *>(context);
    nb::gil_scoped_acquire acquired;
    Calls &calls = **held;
    try {
        if (calls.end_.is_valid()) {
            nb::module_::import_("atexit").attr("unregister")(calls.end_);
            if (nb::hasattr(calls.object_, "on_end")) calls.object_.attr("on_end")(nb::none());
        }
        if (!pending) calls.object_.attr("close")();
    } catch (nb::python_error &error) {
        error.discard_as_unraisable((std::string("the end of ") + calls.what_).c_str());
    }
    if (pending) calls.object_.release();
    delete held;
}

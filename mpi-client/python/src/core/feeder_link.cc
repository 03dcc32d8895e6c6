#include "feeder_link.h"

#include <unistd.h>

#include "calls.h"

namespace nb = nanobind;

namespace {

constexpr unsigned kPauseMicroseconds = 50;

Link &in(void *context) { return **static_cast<std::shared_ptr<Link> *>(context); }

} // namespace

struct ::link Link::functions() {
    struct ::link made = {};
    made.process = nb::cast<int>(calls_.attr("process"));
    made.processes = nb::cast<int>(calls_.attr("processes"));
    made.context = new std::shared_ptr<Link>(shared_from_this());
    made.send = send;
    made.receive = receive;
    made.allgather = allgather;
    made.test = test;
    made.free = free;
    return made;
}

void Link::throw_interruption() {
    if (interruption_ == nullptr) return;
    nb::python_error error = std::move(*interruption_);
    interruption_.reset();
    throw error;
}

void Link::keep_interruption(nb::python_error &&error) {
    interruption_ = std::make_unique<nb::python_error>(std::move(error));
}

void Link::pause() {
    nb::gil_scoped_release released;
    usleep(kPauseMicroseconds);
}

supply_status_t Link::fail(failure *failure, const char *name, const nb::python_error &error) {
    const supply_status_t status = fail_by_exception(failure, "the link between feeders and ranks", name, error);
    failure_text_ = failure->text;
    return status;
}

/* A signal that arrives now must not leave it unknown whether the operation has begun, so its handler runs first. */
template <typename Begin>
supply_status_t Link::begin(int *operation, failure *failure, const char *name, Begin begin) {
    nb::gil_scoped_acquire acquired;
    *operation = LINK_NONE;
    if (!is_waiting_ && PyErr_CheckSignals() != 0) keep_interruption(nb::python_error());
    try {
        *operation = nb::cast<int>(begin(calls_));
        return SUPPLY_OK;
    } catch (nb::python_error &error) {
        fail(failure, name, error);
        if (!error.matches(PyExc_Exception)) keep_interruption(std::move(error));
        return SUPPLY_ERROR_SYSTEM;
    }
}

supply_status_t Link::send(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                           failure *failure) {
    return in(context).begin(operation, failure, "send",
                             [&](const nb::object &calls) { return calls.attr("send")(to, tag, view(buffer, bytes)); });
}

supply_status_t Link::receive(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                              failure *failure) {
    return in(context).begin(operation, failure, "receive", [&](const nb::object &calls) {
        return calls.attr("receive")(from, tag, view(buffer, bytes));
    });
}

supply_status_t Link::allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                failure *failure) {
    return in(context).begin(operation, failure, "allgather", [&](const nb::object &calls) {
        const size_t processes = nb::cast<size_t>(calls.attr("processes"));
        return calls.attr("allgather")(view(send, bytes), view(receive, bytes * processes));
    });
}

supply_status_t Link::test(void *context, int operation, failure *failure) {
    nb::gil_scoped_acquire acquired;
    return in(context).test(operation, failure);
}

supply_status_t Link::test(int operation, failure *failure) {
    try {
        if (is_waiting_ && PyErr_CheckSignals() != 0) {
            keep_interruption(nb::python_error());
            return fail(failure, "test", *interruption_);
        }
        return is_true(calls_.attr("test")(operation)) ? SUPPLY_OK : SUPPLY_AGAIN;
    } catch (nb::python_error &error) {
        const bool is_interruption = !error.matches(PyExc_Exception);
        const bool ends = is_waiting_ || !is_interruption;
        if (ends) fail(failure, "test", error);
        if (is_interruption) keep_interruption(std::move(error));
        return ends ? SUPPLY_ERROR_SYSTEM : SUPPLY_AGAIN;
    }
}

void Link::free(void *context, bool pending) {
    auto *const held = static_cast<std::shared_ptr<Link> *>(context);
    nb::gil_scoped_acquire acquired;
    Link &link = **held;
    if (!pending) {
        try {
            link.calls_.attr("close")();
        } catch (nb::python_error &error) {
            error.discard_as_unraisable("the end of the link between feeders and ranks");
        }
    } else {
        /* Never freed: pending operations may still use it. */
        link.calls_.release();
    }
    delete held;
}

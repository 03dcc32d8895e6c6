#include "exchange.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "calls.h"

extern "C" {
#include "exchange/transport.h"
}

namespace nb = nanobind;

namespace {

/* Between ranks that are ready, an operation takes less time than the shortest sleep. */
constexpr unsigned kYields = 30;
constexpr unsigned kShortestPauseMicroseconds = 50;
constexpr unsigned kLongestPauseMicroseconds = 1000;

size_t end_of(const part *parts, int ranks) {
    size_t end = 0;
    for (int i = 0; i < ranks; i++) end = std::max(end, parts[i].offset + parts[i].bytes);
    return end;
}

supply_status_t fail(failure *failure, const char *operation, const nb::python_error &error) {
    return fail_by_exception(failure, "the exchange between ranks", operation, error);
}

Exchange &in(void *context) { return **static_cast<std::shared_ptr<Exchange> *>(context); }

} // namespace

Exchange::Exchange(nb::object transport)
    : transport_(std::move(transport)), rank_(nb::cast<int>(transport_.attr("rank"))),
      ranks_(nb::cast<int>(transport_.attr("ranks"))), pause_microseconds_(kShortestPauseMicroseconds) {}

supply_status_t Exchange::open(supply_t **supply, const ExchangeOptions &from) {
    supply_exchange_options_t options;
    supply_exchange_options_init(&options);
    options.policy = from.policy;
    options.column = from.column.empty() ? nullptr : from.column.c_str();
    options.nulls_together = from.nulls_together;
    options.fraction = from.fraction;
    options.seed = from.seed;
    options.window_bytes = from.window_bytes;
    options.memory_bytes = from.memory_bytes;
    options.spill_folder = from.spill_folder.empty() ? nullptr : from.spill_folder.c_str();
    options.messages_only = from.messages_only;
    const transport calls = {
        rank_, ranks_, new std::shared_ptr<Exchange>(shared_from_this()), allgather, alltoall, alltoallv, poll, free};
    is_opening_ = true;
    const supply_status_t status = supply__exchange_over(supply, &calls, &options);
    is_opening_ = false;
    return status;
}

void Exchange::throw_interruption() {
    if (interruption_ == nullptr) return;
    nb::python_error error = std::move(*interruption_);
    interruption_.reset();
    throw error;
}

void Exchange::keep_interruption(nb::python_error &&error) {
    interruption_ = std::make_unique<nb::python_error>(std::move(error));
}

void Exchange::pause() {
    nb::gil_scoped_release released;
    if (yields_ > 0) {
        yields_--;
        sched_yield();
        return;
    }
    usleep(pause_microseconds_);
    pause_microseconds_ = std::min(2 * pause_microseconds_, kLongestPauseMicroseconds);
}

/* A signal that arrives now must not leave it unknown whether the operation has begun, so its handler runs first. */
template <typename Begin>
supply_status_t Exchange::begin(failure *failure, const char *operation, Begin begin) {
    nb::gil_scoped_acquire acquired;
    yields_ = kYields;
    pause_microseconds_ = kShortestPauseMicroseconds;
    if (!is_opening_ && PyErr_CheckSignals() != 0) keep_interruption(nb::python_error());
    try {
        begin(transport_);
        return SUPPLY_OK;
    } catch (nb::python_error &error) {
        fail(failure, operation, error);
        if (!error.matches(PyExc_Exception)) keep_interruption(std::move(error));
        return SUPPLY_ERROR_SYSTEM;
    }
}

supply_status_t Exchange::allgather(void *context, const void *send, void *receive, size_t bytes, failure *failure) {
    Exchange &exchange = in(context);
    return exchange.begin(failure, "allgather", [&](const nb::object &transport) {
        transport.attr("allgather")(view(send, bytes), view(receive, bytes * exchange.ranks_));
    });
}

supply_status_t Exchange::alltoall(void *context, const void *send, void *receive, size_t bytes, failure *failure) {
    Exchange &exchange = in(context);
    return exchange.begin(failure, "alltoall", [&](const nb::object &transport) {
        const size_t all = bytes * exchange.ranks_;
        transport.attr("alltoall")(view(send, all), view(receive, all));
    });
}

supply_status_t Exchange::alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                    const part *receive_parts, failure *failure) {
    Exchange &exchange = in(context);
    return exchange.begin(failure, "alltoallv", [&](const nb::object &transport) {
        transport.attr("alltoallv")(view(send, end_of(send_parts, exchange.ranks_)), exchange.tuples(send_parts),
                                    view(receive, end_of(receive_parts, exchange.ranks_)),
                                    exchange.tuples(receive_parts));
    });
}

nb::list Exchange::tuples(const part *parts) const {
    nb::list list;
    for (int i = 0; i < ranks_; i++) list.append(nb::make_tuple(parts[i].offset, parts[i].bytes));
    return list;
}

supply_status_t Exchange::poll(void *context, failure *failure) {
    Exchange &exchange = in(context);
    nb::gil_scoped_acquire acquired;
    try {
        return is_true(exchange.transport_.attr("poll")()) ? SUPPLY_OK : SUPPLY_AGAIN;
    } catch (nb::python_error &error) {
        if (error.matches(PyExc_Exception)) return fail(failure, "poll", error);
        if (exchange.is_opening_) fail(failure, "poll", error);
        exchange.keep_interruption(std::move(error));
        return exchange.is_opening_ ? SUPPLY_ERROR_SYSTEM : SUPPLY_AGAIN;
    }
}

void Exchange::free(void *context, bool pending) {
    auto *const held = static_cast<std::shared_ptr<Exchange> *>(context);
    nb::gil_scoped_acquire acquired;
    Exchange &exchange = **held;
    if (!pending) {
        try {
            exchange.transport_.attr("close")();
        } catch (nb::python_error &error) {
            error.discard_as_unraisable("the end of the exchange between ranks");
        }
    } else {
        /* Never freed: the pending operation may still use it. */
        exchange.transport_.release();
    }
    delete held;
}

#include "exchange.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

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

} // namespace

Exchange::Exchange(nb::object transport)
    : Calls(std::move(transport), "the exchange between ranks"), rank_(nb::cast<int>(object_.attr("rank"))),
      ranks_(nb::cast<int>(object_.attr("ranks"))), pause_microseconds_(kShortestPauseMicroseconds) {}

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
    const transport calls = {rank_, ranks_, context(), allgather, alltoall, alltoallv, poll, free};
    is_waiting_ = true;
    const supply_status_t status = supply__exchange_over(supply, &calls, &options);
    is_waiting_ = false;
    return status;
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

supply_status_t Exchange::begin(failure *failure, const char *operation, const Call &call) {
    yields_ = kYields;
    pause_microseconds_ = kShortestPauseMicroseconds;
    return Calls::begin(failure, operation, call);
}

supply_status_t Exchange::allgather(void *context, const void *send, void *receive, size_t bytes, failure *failure) {
    Exchange &exchange = of(context);
    return exchange.begin(failure, "allgather", [&](const nb::object &transport) {
        return transport.attr("allgather")(view(send, bytes), view(receive, bytes * exchange.ranks_));
    });
}

supply_status_t Exchange::alltoall(void *context, const void *send, void *receive, size_t bytes, failure *failure) {
    Exchange &exchange = of(context);
    return exchange.begin(failure, "alltoall", [&](const nb::object &transport) {
        const size_t all = bytes * exchange.ranks_;
        return transport.attr("alltoall")(view(send, all), view(receive, all));
    });
}

supply_status_t Exchange::alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                    const part *receive_parts, failure *failure) {
    Exchange &exchange = of(context);
    return exchange.begin(failure, "alltoallv", [&](const nb::object &transport) {
        return transport.attr("alltoallv")(view(send, end_of(send_parts, exchange.ranks_)), exchange.tuples(send_parts),
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
    return of(context).ask(failure, "poll", [](const nb::object &transport) { return transport.attr("poll")(); });
}

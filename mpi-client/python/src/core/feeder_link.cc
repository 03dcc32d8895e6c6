#include "feeder_link.h"

#include <unistd.h>

namespace nb = nanobind;

namespace {

constexpr unsigned kPauseMicroseconds = 50;

} // namespace

struct ::link Link::functions() {
    struct ::link made = {};
    made.process = nb::cast<int>(object_.attr("process"));
    made.processes = nb::cast<int>(object_.attr("processes"));
    made.context = context();
    made.send = send;
    made.receive = receive;
    made.allgather = allgather;
    made.test = test;
    made.free = free;
    return made;
}

void Link::pause() {
    nb::gil_scoped_release released;
    usleep(kPauseMicroseconds);
}

supply_status_t Link::begin(int *operation, failure *failure, const char *name, const Call &call) {
    *operation = LINK_NONE;
    return Calls::begin(failure, name, call, operation);
}

supply_status_t Link::send(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                           failure *failure) {
    return of(context).begin(operation, failure, "send",
                             [&](const nb::object &calls) { return calls.attr("send")(to, tag, view(buffer, bytes)); });
}

supply_status_t Link::receive(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                              failure *failure) {
    return of(context).begin(operation, failure, "receive", [&](const nb::object &calls) {
        return calls.attr("receive")(from, tag, view(buffer, bytes));
    });
}

supply_status_t Link::allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                failure *failure) {
    return of(context).begin(operation, failure, "allgather", [&](const nb::object &calls) {
        const size_t processes = nb::cast<size_t>(calls.attr("processes"));
        return calls.attr("allgather")(view(send, bytes), view(receive, bytes * processes));
    });
}

supply_status_t Link::test(void *context, int operation, failure *failure) {
    return of(context).ask(failure, "test",
                           [operation](const nb::object &calls) { return calls.attr("test")(operation); });
}

#include "collective.h"

#include <errno.h>

/* A rank that has not polled for this part of the limit was away. An operation needs more than one poll to complete. */
#define ABSENT_PART 0.5

/* Puts the pair's name in front of the text. */
static supply_status_t name_pair(const struct collective *collective, struct failure *failure) {
    /* supply_fail() takes it from there. */
    errno = failure->error;
    return supply_fail(failure, failure->status, "%s: %s", collective->name, failure->text);
}

static supply_status_t begun(struct collective *collective, supply_status_t status, struct failure *failure) {
    if (status != SUPPLY_OK) return name_pair(collective, failure);
    collective->is_pending = true;
    collective->is_extended = false;
    collective->polled = supply_clock_now();
    collective->end = supply_clock_after(collective->limit);
    return SUPPLY_OK;
}

supply_status_t exchange_allgather(struct collective *collective, const void *send, void *receive, size_t bytes,
                                   struct failure *failure) {
    const struct transport *transport = &collective->transport;
    return begun(collective, transport->allgather(transport->context, send, receive, bytes, failure), failure);
}

supply_status_t exchange_alltoall(struct collective *collective, const void *send, void *receive, size_t bytes,
                                  struct failure *failure) {
    const struct transport *transport = &collective->transport;
    return begun(collective, transport->alltoall(transport->context, send, receive, bytes, failure), failure);
}

supply_status_t exchange_alltoallv(struct collective *collective, const void *send, const struct part *send_parts,
                                   void *receive, const struct part *receive_parts, struct failure *failure) {
    const struct transport *transport = &collective->transport;
    return begun(collective,
                 transport->alltoallv(transport->context, send, send_parts, receive, receive_parts, failure), failure);
}

/* The limit is over. True: not because of the others, so that they get another one, once in an operation. */
static bool extend(struct collective *collective, bool was_absent) {
    const bool extends = was_absent && !collective->is_extended;
    collective->end = supply_clock_after(collective->limit);
    collective->is_extended |= extends;
    return extends;
}

supply_status_t exchange_poll(struct collective *collective, struct failure *failure) {
    const int64_t now = supply_clock_now();
    const bool was_absent = (double)(now - collective->polled) > ABSENT_PART * collective->limit * NANOSECONDS;
    collective->polled = now;
    const supply_status_t status = collective->transport.poll(collective->transport.context, failure);
    if (status == SUPPLY_OK) collective->is_pending = false;
    if (status < 0) return name_pair(collective, failure);
    if (status == SUPPLY_AGAIN && now >= collective->end && !extend(collective, was_absent))
        return supply_fail(failure, SUPPLY_ERROR_TIMEOUT,
                           "%s: another rank has not taken part in the exchange for %g s: has it stopped reading, or "
                           "died? (--timeout / SUPPLY_TIMEOUT)",
                           collective->name, collective->limit);
    return status;
}

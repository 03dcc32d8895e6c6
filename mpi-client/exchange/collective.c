/**
 * Operations on one level and on two, and waits for other ranks. Its caller has the exchange's lock.
 */
#include "collective.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

/* A rank that has not polled for this part of the limit was away. An operation needs more than one poll to complete. */
#define ABSENT_PART 0.5

/* Puts the pair's name in front of the text. */
static supply_status_t collective_name_pair(const struct collective *collective, struct failure *failure) {
    /* supply__fail() takes it from there. */
    errno = failure->error;
    return supply__fail(failure, failure->status, "%s: %s", collective->name, failure->text);
}

void exchange_begin_wait(struct collective *collective) {
    collective->is_extended = false;
    collective->polled = supply__clock_now();
    collective->end = supply__clock_after(collective->limit);
}

static supply_status_t collective_begun(struct collective *collective, enum collective_kind kind, void *receive,
                                        size_t bytes, supply_status_t status, struct failure *failure) {
    collective->kind = status == SUPPLY_OK ? kind : COLLECTIVE_NONE;
    collective->receive = receive;
    collective->bytes = bytes;
    if (status != SUPPLY_OK) {
        collective->operation = NO_OPERATION;
        return collective_name_pair(collective, failure);
    }
    collective->begun++;
    exchange_begin_wait(collective);
    return SUPPLY_OK;
}

supply_status_t exchange_allgather(struct collective *collective, const void *send, void *receive, size_t bytes,
                                   struct failure *failure) {
    const struct transport *transport = &collective->transport;
    struct levels *levels = &collective->levels;
    const supply_status_t status =
        levels->is_open
            ? exchange_levels_allgather(levels, send, bytes, &collective->operation, failure)
            : transport->allgather(transport->context, send, receive, bytes, &collective->operation, failure);
    return collective_begun(collective, COLLECTIVE_ALLGATHER, receive, bytes, status, failure);
}

supply_status_t exchange_alltoall(struct collective *collective, const void *send, void *receive, size_t bytes,
                                  struct failure *failure) {
    const struct transport *transport = &collective->transport;
    struct levels *levels = &collective->levels;
    const supply_status_t status =
        levels->is_open
            ? exchange_levels_alltoall(levels, send, bytes, &collective->operation, failure)
            : transport->alltoall(transport->context, send, receive, bytes, &collective->operation, failure);
    return collective_begun(collective, COLLECTIVE_ALLTOALL, receive, bytes, status, failure);
}

supply_status_t exchange_send_all(struct collective *collective, uint32_t sender, const void *send, void *receive,
                                  size_t bytes, struct failure *failure) {
    const struct transport *transport = &collective->transport;
    struct levels *levels = &collective->levels;
    collective->sender = sender;
    if (levels->is_open)
        return collective_begun(collective, COLLECTIVE_SEND, receive, bytes,
                                exchange_levels_send(levels, sender, send, bytes, &collective->operation, failure),
                                failure);
    for (uint32_t rank = 0; rank < levels->ranks; rank++) {
        const bool is_mine = sender == levels->rank;
        levels->send_parts[rank] = (struct part){.bytes = is_mine && rank != sender ? bytes : 0};
        levels->receive_parts[rank] = (struct part){.bytes = !is_mine && rank == sender ? bytes : 0};
    }
    return collective_begun(collective, COLLECTIVE_SEND, receive, bytes,
                            transport->alltoallv(transport->context, send, levels->send_parts, receive,
                                                 levels->receive_parts, &collective->operation, failure),
                            failure);
}

supply_status_t exchange_move(struct collective *collective, const void *send, const struct part *send_parts,
                              void *receive, const uint64_t *receive_bytes, struct failure *failure) {
    const struct transport *transport = &collective->transport;
    struct levels *levels = &collective->levels;
    size_t at = 0;
    if (levels->is_open)
        return collective_begun(collective, COLLECTIVE_MOVE, NULL, 0,
                                exchange_levels_move(levels, send, send_parts, &collective->operation, failure),
                                failure);
    for (uint32_t rank = 0; rank < levels->ranks; at += receive_bytes[rank++])
        levels->receive_parts[rank] = (struct part){.offset = at, .bytes = receive_bytes[rank]};
    return collective_begun(collective, COLLECTIVE_MOVE, receive, 0,
                            transport->alltoallv(transport->context, send, send_parts, receive, levels->receive_parts,
                                                 &collective->operation, failure),
                            failure);
}

const uint8_t *exchange_message(const struct collective *collective, uint32_t rank, uint64_t bytes) {
    const struct levels *levels = &collective->levels;
    if (levels->is_open) return exchange_levels_message(levels, rank, bytes);
    return (const uint8_t *)collective->receive + levels->receive_parts[rank].offset;
}

/*
 * The limit is over. True: not because of the others, so that they get another one, once in an operation. The next one
 * begins also after a failure: a call that waits again has the whole limit.
 */
static bool collective_extend(struct collective *collective, bool was_absent) {
    const bool extends = was_absent && !collective->is_extended;
    collective->end = supply__clock_after(collective->limit);
    collective->is_extended |= extends;
    return extends;
}

static supply_status_t collective_fail_by_death(const struct collective *collective, struct failure *failure) {
    const struct neighbours *neighbours = collective->levels.neighbours;
    errno = ECONNRESET;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s: rank %u, process %d of this machine, has died",
                        collective->name, neighbours->lost, neighbours->cards[neighbours->lost].process);
}

/* Another rank may need what this one has sent, and MPI moves it only while it is called. */
static void collective_progress(const struct collective *collective) {
    struct failure unused;
    const struct transport *transport = &collective->transport;
    if (collective->operation == NO_OPERATION && !collective->levels.neighbours->are_all)
        transport->test(transport->context, NO_OPERATION, &unused);
}

supply_status_t exchange_wait(struct collective *collective, bool is_over, struct failure *failure) {
    const int64_t now = supply__clock_now();
    const bool was_absent = (double)(now - collective->polled) > ABSENT_PART * collective->limit * NANOSECONDS;
    collective->polled = now;
    if (is_over) return SUPPLY_OK;
    collective_progress(collective);
    if (collective->levels.neighbours->lost != NOBODY_LOST) return collective_fail_by_death(collective, failure);
    if (now < collective->end || collective_extend(collective, was_absent)) return SUPPLY_AGAIN;
    return supply__fail(failure, SUPPLY_ERROR_TIMEOUT,
                        "%s: another rank has not taken part in the exchange for %g s: has it stopped reading, or "
                        "died? (--timeout / SUPPLY_TIMEOUT)",
                        collective->name, collective->limit);
}

/* What the rails of this node have brought. SUPPLY_OK: this rank has taken its part. */
static supply_status_t collective_take(struct collective *collective, struct failure *failure) {
    struct levels *levels = &collective->levels;
    exchange_levels_post(levels);
    exchange_neighbours_look(levels->neighbours);
    TRY(exchange_wait(collective, exchange_levels_have_posted(levels), failure));
    if (collective->kind == COLLECTIVE_ALLGATHER)
        exchange_levels_take_gathered(levels, collective->receive, collective->bytes);
    else if (collective->kind == COLLECTIVE_ALLTOALL)
        exchange_levels_take_pieces(levels, collective->receive, collective->bytes);
    else if (collective->kind == COLLECTIVE_SEND)
        exchange_levels_take_sent(levels, collective->sender, collective->receive, collective->bytes);
    return SUPPLY_OK;
}

supply_status_t exchange_poll(struct collective *collective, struct failure *failure) {
    const struct levels *levels = &collective->levels;
    const struct transport *transport = levels->is_open ? &levels->rail : &collective->transport;
    const supply_status_t status = supply__transport_test(transport, &collective->operation, failure);
    if (status < 0) return collective_name_pair(collective, failure);
    TRY(exchange_wait(collective, status == SUPPLY_OK, failure));
    if (levels->is_open) TRY(collective_take(collective, failure));
    collective->kind = COLLECTIVE_NONE;
    return SUPPLY_OK;
}

/**
 * From notices of feeders to blocks in the ring. It runs in the thread that uses the handle. A notice is checked before
 * it is used; memory that a message may still arrive in is never freed. It needs no lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "remote_state.h"

supply_status_t source_init(struct source *source, const struct transport *transport, const struct processes *processes,
                            uint32_t pair, struct failure *failure) {
    const int feeder = remote_feeder_of(processes, pair);
    *source = (struct source){.transport = transport,
                              .pair = pair,
                              .feeder = feeder,
                              .node = processes->list[feeder].node,
                              .tag = remote_tag(processes, pair),
                              .sending = NO_OPERATION,
                              .receiving = NO_OPERATION,
                              .dropping = NO_OPERATION};
    source->notice = malloc(sizeof *source->notice + TAIL_BYTES_MAX);
    if (source->notice == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return SUPPLY_OK;
}

void source_free(struct source *source) {
    free(source->notice);
    free(source->dropped);
    *source = (struct source){.sending = NO_OPERATION, .receiving = NO_OPERATION, .dropping = NO_OPERATION};
}

void source_ask(struct source *source, enum request_kind kind) {
    source->request.kind = kind;
    source->has_request = true;
}

static supply_status_t arrivals_send_request(struct source *source, struct failure *failure) {
    supply_status_t status = supply__transport_test(source->transport, &source->sending, failure);
    if (status != SUPPLY_OK || !source->has_request) return status;
    source->sent = source->request;
    source->has_request = false;
    return source->transport->send(source->transport->context, source->feeder, source->tag + TAG_REQUEST, &source->sent,
                                   sizeof source->sent, &source->sending, failure);
}

supply_status_t source_advance(struct source *source, struct failure *failure) {
    const struct transport *transport = source->transport;
    supply_status_t status = arrivals_send_request(source, failure);
    if (status < 0 || source->has_notice || source->is_closed) return status < 0 ? status : SUPPLY_OK;
    if (source->receiving == NO_OPERATION)
        status = transport->receive(transport->context, source->feeder, source->tag + TAG_NOTICE, source->notice,
                                    sizeof *source->notice + TAIL_BYTES_MAX, &source->receiving, failure);
    if (status >= 0) status = supply__transport_test(transport, &source->receiving, failure);
    source->has_notice = status == SUPPLY_OK;
    if (source->has_notice && source->notice->tail_bytes > TAIL_BYTES_MAX)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "pair %u on node %s: a notice has a tail of %u bytes",
                            source->pair, source->node, source->notice->tail_bytes);
    return status < 0 ? status : SUPPLY_OK;
}

supply_status_t source_next(struct source *source, struct failure *failure) {
    source->has_notice = false;
    source->is_closed = source->notice->kind == NOTICE_CLOSED;
    return source_advance(source, failure);
}

/* Begins to receive the block of the notice. SUPPLY_OK, or a failure: _CONTRACT if the memory is too small. */
static supply_status_t source_receive_block(struct source *source, const struct slot *slot, int *operation,
                                            struct failure *failure) {
    const size_t bytes = source->notice->filled.bytes;
    if (bytes > slot->bytes)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                            "pair %u on node %s: a block has %zu bytes, more than its slot of %zu", source->pair,
                            source->node, bytes, slot->bytes);
    return source->transport->receive(source->transport->context, source->feeder, source->tag + TAG_BLOCK,
                                      slot->address, bytes, operation, failure);
}

supply_status_t source_drop(struct source *source, size_t block_bytes, struct failure *failure) {
    if (source->notice->kind == NOTICE_BLOCK && source->dropping == NO_OPERATION) {
        if (source->dropped == NULL) source->dropped = malloc(block_bytes);
        if (source->dropped == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
        const struct slot slot = {.address = source->dropped, .bytes = block_bytes};
        TRY(source_receive_block(source, &slot, &source->dropping, failure));
    }
    TRY(supply__transport_test(source->transport, &source->dropping, failure));
    return source_next(source, failure);
}

bool source_is_pending(const struct source *source) {
    return source->sending != NO_OPERATION || source->receiving != NO_OPERATION || source->dropping != NO_OPERATION;
}

supply_status_t source_failure(const struct source *source, struct failure *failure) {
    errno = source->notice->error;
    return supply__fail(failure, (supply_status_t)source->notice->status, "node %s: %.*s", source->node,
                        (int)source->notice->tail_bytes, (const char *)remote_tail(source->notice));
}

/* What Spark says in the header of the mapped file, in that of the ring. */
static void arrivals_copy_header(struct remote *remote, const struct notice_message *notice) {
    struct mapped_file_header *header = supply__filler_header(remote->handle);
    header->plan = notice->plan;
    header->exchange = notice->exchange;
    header->exchange_seed = notice->exchange_seed;
    header->exchange_fraction = notice->exchange_fraction;
    if (remote->source_count > 1) return;
    header->epoch_elements = notice->epoch_elements;
    header->epoch_steps = notice->epoch_steps;
    header->counts_known = notice->counts_known;
}

static supply_status_t arrivals_take_schema(struct remote *remote, const struct source *source,
                                            struct failure *failure) {
    const struct notice_message *notice = source->notice;
    const uint64_t of_entries = (uint64_t)notice->schema_columns * sizeof(struct schema_entry);
    if (of_entries == 0 || of_entries > notice->tail_bytes)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "pair %u on node %s: %u columns in %u bytes", source->pair,
                            source->node, notice->schema_columns, notice->tail_bytes);
    const struct schema schema = {.entries = (struct schema_entry *)remote_tail(source->notice),
                                  .count = notice->schema_columns,
                                  .text_bytes = notice->tail_bytes - (uint32_t)of_entries};
    if (supply__filler_header(remote->handle)->schema_columns == 0)
        return supply__filler_set_schema(remote->handle, &schema, failure);
    if (supply__filler_has_schema(remote->handle, &schema)) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                        "pair %u on node %s has other columns than another pair of this rank: the Suppliers of both "
                        "must be the same",
                        source->pair, source->node);
}

static void arrivals_push(struct remote *remote, supply_status_t status, const struct source *source, int receiving) {
    *remote_arrival(remote, remote->count++) =
        (struct arrival){.status = status, .filled = source->notice->filled, .receiving = receiving, .source = source};
    remote->reported.status = SUPPLY_OK;
}

struct source *remote_next_source(const struct remote *remote) {
    struct source *next = NULL;
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct source *source = &remote->sources[(remote->turn + i) % remote->source_count];
        if (source->has_ended) continue;
        /* A position in an exchange counts elements, so these must come in the same order in each run. */
        if (source->has_notice || source->request.exchange) return source;
        if (next == NULL) next = source;
    }
    return next;
}

static supply_status_t arrivals_take_block(struct remote *remote, struct source *source, const struct slot *slot,
                                           struct failure *failure) {
    int receiving;
    TRY(source_receive_block(source, slot, &receiving, failure));
    arrivals_push(remote, SUPPLY_OK, source, receiving);
    remote->turn = (uint32_t)(source - remote->sources + 1) % remote->source_count;
    return SUPPLY_OK;
}

void remote_ask_for_epoch(struct remote *remote) {
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct source *source = &remote->sources[i];
        if (source->has_ended_data) continue;
        source->has_ended = false;
        source_ask(source, REMOTE_NEXT_EPOCH);
    }
}

/* The rank's epoch ends when it has ended on all of its pairs, and the data in the same way. */
static void arrivals_take_end(struct remote *remote, struct source *source, supply_status_t end) {
    source->has_ended = true;
    source->has_ended_data = end == SUPPLY_END_OF_DATA;
    if (remote_next_source(remote) != NULL) return;
    bool all_data = true, no_data = true;
    for (uint32_t i = 0; i < remote->source_count; i++) {
        all_data &= remote->sources[i].has_ended_data;
        no_data &= !remote->sources[i].has_ended_data;
    }
    /* A stream may end in the middle of an epoch, for some pairs only. */
    if (all_data || no_data)
        arrivals_push(remote, end, source, NO_OPERATION);
    else
        remote_ask_for_epoch(remote);
}

/*
 * A feeder that waits for Spark reports it each time that its time limit is over, whether the program waits or not. So
 * at most one and a half limits after the program has begun to wait, such a report counts.
 */
static bool arrivals_has_waited(const struct remote *remote) {
    return remote->waits_since != 0 && supply__clock_now() - remote->waits_since > (int64_t)(remote->timeout * 1e9 / 2);
}

static void arrivals_take_failure(struct remote *remote, const struct source *source) {
    if (source->notice->status != SUPPLY_ERROR_TIMEOUT)
        source_failure(source, &remote->failed);
    else if (arrivals_has_waited(remote))
        source_failure(source, &remote->reported);
}

/* SUPPLY_OK: the notice is used. SUPPLY_AGAIN: it needs a slot that is not free yet. */
static supply_status_t arrivals_take_notice(struct remote *remote, struct source *source, struct failure *failure) {
    struct slot slot;
    const struct notice_message *notice = source->notice;
    arrivals_copy_header(remote, notice);
    switch (notice->kind) {
        case NOTICE_SCHEMA:
            return arrivals_take_schema(remote, source, failure);
        case NOTICE_BLOCK:
            if (!supply__filler_slot(remote->handle, remote->count, &slot)) return SUPPLY_AGAIN;
            return arrivals_take_block(remote, source, &slot, failure);
        case NOTICE_END_OF_EPOCH:
        case NOTICE_END_OF_DATA:
            if (!supply__filler_slot(remote->handle, remote->count, &slot)) return SUPPLY_AGAIN;
            arrivals_take_end(remote, source,
                              notice->kind == NOTICE_END_OF_EPOCH ? SUPPLY_END_OF_EPOCH : SUPPLY_END_OF_DATA);
            return SUPPLY_OK;
        case NOTICE_FAILURE:
            arrivals_take_failure(remote, source);
            return SUPPLY_OK;
        default:
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "pair %u on node %s: an unexpected notice of kind %u",
                                source->pair, source->node, notice->kind);
    }
}

static supply_status_t arrivals_take_notices(struct remote *remote, struct failure *failure) {
    struct source *source;
    while (remote->failed.status == SUPPLY_OK && (source = remote_next_source(remote)) != NULL && source->has_notice) {
        supply_status_t status = arrivals_take_notice(remote, source, failure);
        if (status == SUPPLY_AGAIN) break;
        if (status == SUPPLY_OK) status = source_next(source, failure);
        if (status != SUPPLY_OK) return status;
    }
    return SUPPLY_OK;
}

supply_status_t remote_test_arrivals(struct remote *remote, struct failure *failure) {
    supply_status_t all = SUPPLY_OK;
    for (uint32_t i = 0; i < remote->count; i++) {
        const supply_status_t status =
            supply__transport_test(&remote->transport, &remote_arrival(remote, i)->receiving, failure);
        if (status < 0) return status;
        if (status == SUPPLY_AGAIN) all = SUPPLY_AGAIN;
    }
    return all;
}

supply_status_t remote_advance(struct remote *remote, struct failure *failure) {
    for (uint32_t i = 0; i < remote->source_count; i++) {
        TRY(source_advance(&remote->sources[i], failure));
    }
    supply_status_t status = arrivals_take_notices(remote, failure);
    if (status == SUPPLY_OK) status = remote_test_arrivals(remote, failure);
    return status == SUPPLY_AGAIN ? SUPPLY_OK : status;
}

supply_status_t remote_take(struct remote *remote, struct filled *filled, struct failure *failure) {
    if (remote->count == 0) {
        if (remote->failed.status != SUPPLY_OK)
            *failure = remote->failed;
        else if (remote->reported.status != SUPPLY_OK)
            *failure = remote->reported;
        else
            return SUPPLY_AGAIN;
        remote->reported.status = SUPPLY_OK;
        return failure->status;
    }
    const struct arrival *head = remote_arrival(remote, 0);
    if (head->receiving != NO_OPERATION) return SUPPLY_AGAIN;
    *filled = head->filled;
    remote->first = (remote->first + 1) % remote->capacity;
    remote->count--;
    return head->status;
}

/** From notices to blocks in the ring. */
#include <string.h>

#include "clock.h"
#include "remote_state.h"

/* What Spark says in the header of the mapped file, in that of the ring. */
static void copy_header(struct remote *remote, const struct notice_message *notice) {
    struct mapped_file_header *header = supply_filler_header(remote->handle);
    header->plan = notice->plan;
    header->exchange = notice->exchange;
    header->exchange_seed = notice->exchange_seed;
    header->exchange_fraction = notice->exchange_fraction;
    if (remote->source_count > 1) return;
    header->epoch_elements = notice->epoch_elements;
    header->epoch_steps = notice->epoch_steps;
    header->counts_known = notice->counts_known;
}

static supply_status_t take_schema(struct remote *remote, const struct source *source, struct failure *failure) {
    const struct notice_message *notice = source->notice;
    const uint32_t columns = notice->tail_bytes / sizeof(struct schema_entry);
    const struct mapped_file_header *header = supply_filler_header(remote->handle);
    const uint8_t *stored = (const uint8_t *)header + SCHEMA_OFFSET;
    if (header->schema_columns == 0) {
        supply_filler_set_schema(remote->handle, (const struct schema_entry *)remote_tail(source->notice), columns);
    } else if (header->schema_columns != columns ||
               memcmp(stored, remote_tail(source->notice), notice->tail_bytes) != 0) {
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                           "pair %u on node %s has other columns than pair %u: the Suppliers of both must be the same",
                           source->pair, source->node, remote->sources[0].pair);
    }
    return SUPPLY_OK;
}

static void push(struct remote *remote, supply_status_t status, const struct source *source, int receiving) {
    *remote_arrival(remote, remote->count++) =
        (struct arrival){.status = status, .filled = source->notice->filled, .receiving = receiving, .source = source};
    remote->reported.status = SUPPLY_OK;
}

struct source *remote_next_source(const struct remote *remote) {
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct source *source = &remote->sources[(remote->turn + i) % remote->source_count];
        if (!source->has_ended) return source;
    }
    return NULL;
}

static supply_status_t take_block(struct remote *remote, struct source *source, const struct slot *slot,
                                  struct failure *failure) {
    int receiving;
    const supply_status_t status = source_receive_block(source, slot, &receiving, failure);
    if (status != SUPPLY_OK) return status;
    push(remote, SUPPLY_OK, source, receiving);
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
static void take_end(struct remote *remote, struct source *source, supply_status_t end) {
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
        push(remote, end, source, LINK_NONE);
    else
        remote_ask_for_epoch(remote);
}

/*
 * A feeder that waits for Spark reports it each time that its time limit is over, whether the program waits or not. So
 * at most one and a half limits after the program has begun to wait, such a report counts.
 */
static bool has_waited(const struct remote *remote) {
    return remote->waits_since != 0 && supply_clock_now() - remote->waits_since > (int64_t)(remote->timeout * 1e9 / 2);
}

static void take_failure(struct remote *remote, const struct source *source) {
    if (source->notice->status != SUPPLY_ERROR_TIMEOUT)
        source_failure(source, &remote->failed);
    else if (has_waited(remote))
        source_failure(source, &remote->reported);
}

/* SUPPLY_OK: the notice is used. SUPPLY_AGAIN: it needs a slot that is not free yet. */
static supply_status_t take_notice(struct remote *remote, struct source *source, struct failure *failure) {
    struct slot slot;
    const struct notice_message *notice = source->notice;
    copy_header(remote, notice);
    switch (notice->kind) {
        case NOTICE_SCHEMA:
            return take_schema(remote, source, failure);
        case NOTICE_BLOCK:
            if (!supply_filler_slot(remote->handle, remote->count, &slot)) return SUPPLY_AGAIN;
            return take_block(remote, source, &slot, failure);
        case NOTICE_END_OF_EPOCH:
        case NOTICE_END_OF_DATA:
            if (!supply_filler_slot(remote->handle, remote->count, &slot)) return SUPPLY_AGAIN;
            take_end(remote, source, notice->kind == NOTICE_END_OF_EPOCH ? SUPPLY_END_OF_EPOCH : SUPPLY_END_OF_DATA);
            return SUPPLY_OK;
        case NOTICE_FAILURE:
            take_failure(remote, source);
            return SUPPLY_OK;
        default:
            return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "pair %u on node %s: an unexpected notice of kind %u",
                               source->pair, source->node, notice->kind);
    }
}

static supply_status_t take_notices(struct remote *remote, struct failure *failure) {
    struct source *source;
    while (remote->failed.status == SUPPLY_OK && (source = remote_next_source(remote)) != NULL && source->has_notice) {
        supply_status_t status = take_notice(remote, source, failure);
        if (status == SUPPLY_AGAIN) break;
        if (status == SUPPLY_OK) status = source_next(source, failure);
        if (status != SUPPLY_OK) return status;
    }
    return SUPPLY_OK;
}

supply_status_t remote_test_arrivals(struct remote *remote, struct failure *failure) {
    supply_status_t all = SUPPLY_OK;
    for (uint32_t i = 0; i < remote->count; i++) {
        const supply_status_t status = remote_test(&remote->link, &remote_arrival(remote, i)->receiving, failure);
        if (status < 0) return status;
        if (status == SUPPLY_AGAIN) all = SUPPLY_AGAIN;
    }
    return all;
}

supply_status_t remote_advance(struct remote *remote, struct failure *failure) {
    for (uint32_t i = 0; i < remote->source_count; i++) {
        const supply_status_t status = source_advance(&remote->sources[i], failure);
        if (status != SUPPLY_OK) return status;
    }
    supply_status_t status = take_notices(remote, failure);
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
    if (head->receiving != LINK_NONE) return SUPPLY_AGAIN;
    *filled = head->filled;
    remote->first = (remote->first + 1) % remote->capacity;
    remote->count--;
    return head->status;
}

/** The filler of a handle with exchanged elements. */
#include "exchange_state.h"

#include <poll.h>
#include <stdlib.h>

#include "poll_pause.h"

/* While a rank waits for Spark, the pair's pipe wakes it. A pair that a feeder has opened has none here. */
#define PIPE_MILLISECONDS 10

static supply_status_t agreement_failed(struct exchange *exchange, supply_status_t status) {
    /* With a failure of the transport the operation may be under way. After a time-out the call may be repeated. */
    if (exchange->collective.is_pending) return status;
    exchange->failed = (struct failure){0};
    exchange_await_window(exchange);
    return status;
}

static void describe(const void *context, enum difference difference, char *text) {
    const struct exchange *exchange = context;
    if (difference == FAILED)
        supply_copy_line(text, AGREE_TEXT_BYTES, exchange->failed.text, sizeof exchange->failed.text);
    else if (difference == SETTINGS_DIFFER)
        exchange_settings_text(&exchange->settings, text, AGREE_TEXT_BYTES);
    else
        exchange_columns_text(&exchange->columns, text, AGREE_TEXT_BYTES);
}

static supply_status_t agree(struct exchange *exchange, struct failure *failure) {
    const supply_status_t status =
        exchange_agree_poll(&exchange->agree, &exchange->collective, describe, exchange, failure);
    if (status < 0) return agreement_failed(exchange, status);
    if (status != SUPPLY_OK) return status;
    if (exchange->step == STEP_AGREE) return exchange_agreed(exchange, failure);
    exchange_await_window(exchange);
    return SUPPLY_OK;
}

/* One step. SUPPLY_OK: it is over, or has progressed. */
static supply_status_t advance(struct exchange *exchange, struct failure *failure) {
    supply_status_t status;
    switch (exchange->step) {
        case STEP_OPEN:
        case STEP_AGREE:
            return agree(exchange, failure);
        case STEP_GATHER:
            status = exchange->has_rounds ? SUPPLY_OK : exchange_gather_window(exchange);
            return status == SUPPLY_OK ? exchange_begin_agreement(exchange, failure) : status;
        case STEP_SAMPLE:
        case STEP_COLUMNS:
            status = exchange_poll(&exchange->collective, failure);
            if (status != SUPPLY_OK) return status;
            return exchange->step == STEP_SAMPLE ? exchange_take_samples(exchange, failure)
                                                 : exchange_take_columns(exchange, failure);
        default:
            return exchange_continue_round(exchange, failure);
    }
}

supply_status_t exchange_advance(struct exchange *exchange, struct failure *failure) {
    const bool is_opening = exchange->step == STEP_OPEN;
    for (;;) {
        const supply_status_t status = exchange->step == STEP_END ? SUPPLY_OK : advance(exchange, failure);
        if (status != SUPPLY_OK || (is_opening && exchange->step != STEP_OPEN)) return status;
        if (exchange->step == STEP_DELIVER) return SUPPLY_OK;
        if (exchange->step != STEP_END) continue;
        exchange->filled = (struct filled){.epoch = exchange->epoch};
        return exchange->end == WINDOW_ENDS_EPOCH ? SUPPLY_END_OF_EPOCH : SUPPLY_END_OF_DATA;
    }
}

static void pause_until_progress(const struct exchange *exchange, int64_t since) {
    struct pollfd pipe = {.fd = supply_fd(exchange->pair), .events = POLLIN};
    const bool is_spinning = supply_clock_now() - since < POLL_SPIN_NANOSECONDS;
    if (exchange->step == STEP_GATHER && !is_spinning && pipe.fd >= 0)
        poll(&pipe, 1, PIPE_MILLISECONDS);
    else
        supply_poll_pause(since);
}

supply_status_t exchange_await(struct exchange *exchange, struct failure *failure) {
    const struct filler_pair *pair = &exchange->inspected;
    int64_t since = supply_clock_now();
    for (;;) {
        const enum step step = exchange->step;
        const supply_status_t status = exchange_advance(exchange, failure);
        if (status != SUPPLY_AGAIN) return status;
        if (pair->interrupted != NULL && pair->interrupted(pair->interrupted_context)) return SUPPLY_INTERRUPTED;
        if (exchange->step != step) since = supply_clock_now();
        pause_until_progress(exchange, since);
    }
}

static supply_status_t fill(void *context, const struct slot *slot, bool wait, struct filled *filled,
                            struct failure *failure) {
    struct exchange *exchange = context;
    exchange->slot = *slot;
    if (exchange->step == STEP_END)
        exchange_begin_epoch(exchange);
    else if (exchange->step == STEP_DELIVER)
        exchange_continue(exchange);
    const supply_status_t status = wait ? exchange_await(exchange, failure) : exchange_advance(exchange, failure);
    if (status >= 0) *filled = exchange->filled;
    return status;
}

static supply_status_t learn_schema(void *context, struct failure *failure) {
    struct exchange *exchange = context;
    const struct columns *columns = &exchange->columns;
    const supply_status_t status =
        exchange_columns_learn(&exchange->columns, exchange->pair, exchange->inspected.name, failure);
    if (status == SUPPLY_OK && columns->schema.count > 0)
        supply_filler_set_schema(exchange->handle, columns->schema.entries, columns->schema.count);
    return status;
}

/* A pair of which feeders open several has no position inside an epoch. */
static supply_status_t check_position(const struct exchange *exchange, const struct position *position) {
    if (!position->inside) return SUPPLY_OK;
    const supply_block_t block = {.epoch = position->epoch,
                                  .partition = position->partition,
                                  .first_element = position->element,
                                  .element_count = 1};
    supply_position_t unused;
    return supply_position_after(exchange->pair, &block, 0, &unused);
}

static supply_status_t find_position(const void *context, const struct position *consumed, struct position *position) {
    const struct exchange *exchange = context;
    if (!exchange_positions_find(&exchange->positions, &exchange->resume, consumed, exchange->fingerprint, position))
        return SUPPLY_ERROR_ARGUMENT;
    return check_position(exchange, position);
}

static const supply_t *pair_of(const void *context) { return ((const struct exchange *)context)->pair; }

static void free_memory(struct exchange *exchange) {
    exchange_gather_free(&exchange->gather);
    exchange_window_free(&exchange->window);
    exchange_destinations_free(&exchange->destinations);
    exchange_agree_free(&exchange->agree);
    exchange_round_free(&exchange->round);
    exchange_range_free(&exchange->range);
    exchange_transfer_free(&exchange->transfer);
    exchange_slot_free(&exchange->layout);
    exchange_columns_free(&exchange->columns);
    exchange_settings_free(&exchange->settings);
    free(exchange->columns_of_other);
    free(exchange->counts);
    free(exchange);
}

/* Contexts that are never freed. The list keeps them from tools that look for leaks. */
static struct exchange *kept;

/*
 * MPI cannot take back a collective operation: if another rank begins it later, it still reads and writes the buffers.
 * So they are never freed then, and neither is the slot.
 */
void exchange_free(struct exchange *exchange, bool *keep) {
    const bool is_pending = exchange->collective.is_pending;
    const struct transport *transport = &exchange->collective.transport;
    *keep = is_pending && exchange->step == STEP_MOVE;
    transport->free(transport->context, is_pending);
    if (is_pending)
        exchange->next_kept = __atomic_exchange_n(&kept, exchange, __ATOMIC_ACQ_REL);
    else
        free_memory(exchange);
}

static supply_status_t close_within(void *context, double seconds, const char *reason, bool *keep) {
    struct exchange *exchange = context;
    supply_status_t status;
    if (exchange->owns_pair && reason != NULL && !exchange->spark_has_failed)
        status = supply_abort(exchange->pair, reason);
    else
        status = exchange->owns_pair ? supply_close_within(exchange->pair, seconds) : SUPPLY_OK;
    if (status <= SUPPLY_OK) exchange_free(exchange, keep);
    return status;
}

static void abort_pair(void *context, const char *reason, bool *keep) {
    struct exchange *exchange = context;
    if (exchange->owns_pair) supply_abort(exchange->pair, reason);
    exchange_free(exchange, keep);
}

/* The transport belongs to the parent: MPI must not be called in a child. */
static void abandon(void *context) {
    struct exchange *exchange = context;
    supply_abandon_in_child(exchange->pair);
    free_memory(exchange);
}

struct filler exchange_filler(struct exchange *exchange) {
    return (struct filler){.context = exchange,
                           .fill = fill,
                           .learn_schema = learn_schema,
                           .position = find_position,
                           .pair = pair_of,
                           .close = close_within,
                           .abort = abort_pair,
                           .abandon = abandon};
}

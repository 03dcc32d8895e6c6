/**
 * An exchange as a filler of a handle: goes from step to step, in the program's calls or in a thread (mover.c). Who
 * advances it has mover.lock; another rank may fail at any step.
 */
#include <stdlib.h>

#include "exchange_state.h"
#include "api/filler.h"
#include "base/wait.h"

/* While a rank waits for Spark, the pair's pipe wakes it. */
#define PIPE_NANOSECONDS 10000000

static supply_status_t exchange_agreement_failed(struct exchange *exchange, supply_status_t status) {
    /* With a failure of the transport the operation may be under way. After a time-out the call may be repeated. */
    if (exchange->collective.kind != COLLECTIVE_NONE) return status;
    exchange->failed = (struct failure){0};
    exchange_await_window(exchange);
    return status;
}

static void exchange_describe_state(const void *context, enum difference difference, char *text) {
    const struct exchange *exchange = context;
    if (difference == FAILED)
        supply__copy_line(text, AGREE_TEXT_BYTES, exchange->failed.text, sizeof exchange->failed.text);
    else if (difference == SETTINGS_DIFFER)
        exchange_settings_text(&exchange->settings, text, AGREE_TEXT_BYTES);
    else if (difference == STEPS_DIFFER)
        exchange_steps_text(exchange, text, AGREE_TEXT_BYTES);
    else
        exchange_columns_text(&exchange->columns, text, AGREE_TEXT_BYTES);
}

static supply_status_t exchange_agree(struct exchange *exchange, struct failure *failure) {
    const supply_status_t status =
        exchange_agree_poll(&exchange->agree, &exchange->collective, exchange_describe_state, exchange, failure);
    if (status < 0) return exchange_agreement_failed(exchange, status);
    if (status != SUPPLY_OK) return status;
    if (exchange->step == STEP_AGREE) return exchange_agreed(exchange, failure);
    struct neighbours *neighbours = &exchange->neighbours;
    exchange->step = STEP_MEET;
    return exchange_allgather(&exchange->collective, &neighbours->mine, neighbours->cards, sizeof neighbours->mine,
                              failure);
}

/* One step. SUPPLY_OK: it is over, or has progressed. */
static supply_status_t exchange_step(struct exchange *exchange, struct failure *failure) {
    switch (exchange->step) {
        case STEP_OPEN:
        case STEP_AGREE:
            return exchange_agree(exchange, failure);
        case STEP_MEET:
        case STEP_LINK:
        case STEP_BOARDS:
        case STEP_RAILS:
            return exchange_meet(exchange, failure);
        case STEP_GATHER:
            if (!exchange->has_rounds) TRY(exchange_gather_window(exchange));
            return exchange_begin_agreement(exchange, failure);
        case STEP_SAMPLE:
        case STEP_COLUMNS:
            TRY(exchange_poll(&exchange->collective, failure));
            return exchange->step == STEP_SAMPLE ? exchange_take_samples(exchange, failure)
                                                 : exchange_take_columns(exchange, failure);
        default:
            return exchange_continue_round(exchange, failure);
    }
}

/* Adds the time since the last call to that step. */
static void exchange_count_time(struct exchange *exchange, enum step step) {
    supply_exchange_statistics_t *statistics = &exchange->statistics;
    const int64_t now = supply__clock_now();
    if (step < STEP_GATHER) return;
    double *seconds = &statistics->seconds_agreeing;
    if (step == STEP_GATHER) seconds = &statistics->seconds_gathering;
    if (step == STEP_COPY || step == STEP_ARRIVE) seconds = &statistics->seconds_copying;
    if (step == STEP_MOVE) seconds = &statistics->seconds_sending;
    *seconds += (double)(now - exchange->step_since) / NANOSECONDS;
    exchange->step_since = now;
}

supply_status_t exchange_advance(struct exchange *exchange, struct failure *failure) {
    const bool is_opening = exchange->step < STEP_GATHER;
    for (;;) {
        const enum step step = exchange->step;
        exchange_count_time(exchange, step);
        const supply_status_t status = step == STEP_END ? SUPPLY_OK : exchange_step(exchange, failure);
        /* The step in front of *copy* packs the messages when its wait is over. */
        exchange_count_time(exchange, exchange->step == STEP_COPY ? STEP_COPY : step);
        if (status != SUPPLY_OK || (is_opening && exchange->step >= STEP_GATHER)) return status;
        if (exchange->step == STEP_DELIVER) return SUPPLY_OK;
        if (exchange->step != STEP_END) continue;
        exchange->filled = (struct filled){.epoch = exchange->epoch};
        return exchange->end == WINDOW_ENDS_EPOCH ? SUPPLY_END_OF_EPOCH : SUPPLY_END_OF_DATA;
    }
}

struct wait exchange_wait_in_step(const struct exchange *exchange) {
    struct wait wait = supply__wait_begin((struct wait_limit){INFINITY, exchange->inspected.interruption});
    if (exchange->step == STEP_GATHER) wait.fd = supply_fd(exchange->pair);
    if (wait.fd >= 0) wait.pause = PIPE_NANOSECONDS;
    return wait;
}

supply_status_t exchange_await(struct exchange *exchange, struct failure *failure) {
    struct wait wait = exchange_wait_in_step(exchange);
    for (;;) {
        const enum step step = exchange->step;
        const supply_status_t status = exchange_advance(exchange, failure);
        if (status != SUPPLY_AGAIN) return status;
        if (exchange->step != step) wait = exchange_wait_in_step(exchange);
        if (supply__wait_more(&wait) != SUPPLY_INTERRUPTED) continue;
        exchange_count_time(exchange, exchange->step);
        return SUPPLY_INTERRUPTED;
    }
}

void exchange_publish(struct exchange *exchange) {
    supply_exchange_statistics_t *all = &exchange->statistics;
    all->collectives = exchange->collective.begun;
    *supply__filler_statistics(exchange->outer) = *all;
    const struct exchange_totals totals = {
        .ranks = all->ranks,
        .copying_ranks = all->copying_ranks,
        .forwarded_ranks = all->forwarded_ranks,
        .window_bytes = all->window_bytes,
        .windows = all->windows,
        .rounds = all->rounds,
        .collectives = all->collectives,
        .copied_bytes = all->copied_bytes,
        .sent_bytes = all->sent_bytes,
        .gathering = (uint64_t)(all->seconds_gathering * NANOSECONDS),
        .agreeing = (uint64_t)(all->seconds_agreeing * NANOSECONDS),
        .copying = (uint64_t)(all->seconds_copying * NANOSECONDS),
        .sending = (uint64_t)(all->seconds_sending * NANOSECONDS),
    };
    const uint64_t *numbers = (const uint64_t *)&totals;
    uint64_t *to = (uint64_t *)&supply__filler_header(exchange->pair)->exchange_totals;
    for (size_t i = 0; i < sizeof totals / sizeof *to; i++) __atomic_store_n(to + i, numbers[i], __ATOMIC_RELAXED);
}

/* A program that has not called for this part of the limit computes. */
#define AWAY_PART 0.5

bool exchange_is_awaited(const struct exchange *exchange) {
    const double seconds = (double)(supply__clock_now() - exchange->awaited_at) / NANOSECONDS;
    return exchange->awaited_at != 0 && seconds < AWAY_PART * exchange->collective.limit;
}

/* Nothing is ready, so the program waits. */
static supply_status_t exchange_advance_to_block(struct exchange *exchange, bool wait, struct failure *failure) {
    /* Time between the calls of one wait is part of it, as in seconds_waited. */
    if (!supply__filler_is_waiting(exchange->handle) || !supply__filler_is_waiting(exchange->outer))
        exchange->step_since = supply__clock_now();
    if (exchange->step == STEP_END)
        exchange_begin_epoch(exchange);
    else if (exchange->step == STEP_DELIVER)
        exchange_continue(exchange);
    /* What was begun while the program computed has its limit from here on. */
    if (!exchange_is_awaited(exchange)) exchange_begin_wait(&exchange->collective);
    return wait ? exchange_await(exchange, failure) : exchange_advance(exchange, failure);
}

static supply_status_t exchange_fill(void *context, const struct slot *slot, bool wait, struct filled *filled,
                                     struct failure *failure) {
    struct exchange *exchange = context;
    pthread_mutex_lock(&exchange->mover.lock);
    exchange->slot = *slot;
    supply_status_t status = exchange_mover_take(exchange, failure);
    if (status == SUPPLY_AGAIN) status = exchange_advance_to_block(exchange, wait, failure);
    const bool is_awaited = status == SUPPLY_AGAIN || status == SUPPLY_INTERRUPTED;
    exchange->awaited_at = is_awaited ? supply__clock_now() : 0;
    exchange->delivered += status >= 0 && !is_awaited;
    exchange_publish(exchange);
    exchange->seen.positions = exchange->positions;
    exchange->seen.fingerprint = exchange->fingerprint;
    if (status >= 0) *filled = exchange->filled;
    exchange_mover_permit(exchange, status);
    pthread_mutex_unlock(&exchange->mover.lock);
    return status;
}

static supply_status_t exchange_learn_schema(void *context, struct failure *failure) {
    struct exchange *exchange = context;
    const struct columns *columns = &exchange->columns;
    /* The handle has them already. Only then the pair may be in use by the thread. */
    if (exchange->has_memory) return SUPPLY_OK;
    const supply_status_t status =
        exchange_columns_learn(&exchange->columns, exchange->pair, exchange->inspected.name, failure);
    if (status == SUPPLY_OK && columns->schema.count > 0)
        return supply__filler_set_schema(exchange->handle, &columns->whole, failure);
    return status;
}

static supply_status_t exchange_find_position(const void *context, const struct position *consumed,
                                              struct position *position) {
    const struct exchange *exchange = context;
    const bool is_known = exchange_positions_find(&exchange->seen.positions, &exchange->start, consumed,
                                                  exchange->seen.fingerprint, position);
    return is_known ? SUPPLY_OK : SUPPLY_ERROR_ARGUMENT;
}

static const supply_t *exchange_pair_of(const void *context) { return ((const struct exchange *)context)->pair; }

void exchange_free_memory(struct exchange *exchange) {
    exchange_gather_free(&exchange->gather);
    exchange_window_free(&exchange->window);
    exchange_destinations_free(&exchange->destinations);
    exchange_agree_free(&exchange->agree);
    exchange_round_free(&exchange->round);
    exchange_range_free(&exchange->range);
    exchange_transfer_free(&exchange->transfer);
    exchange_levels_free(&exchange->collective.levels);
    exchange_neighbours_free(&exchange->neighbours);
    exchange_slot_free(&exchange->layout);
    exchange_columns_free(&exchange->columns);
    exchange_settings_free(&exchange->settings);
    free(exchange->columns_of_other);
    free(exchange->counts);
    free(exchange);
}

/* Contexts that are never freed. They stay reachable by this list, so leak checkers do not report them. */
static struct exchange *kept;

static void exchange_never_free(struct exchange *exchange) {
    exchange_neighbours_leave(&exchange->neighbours);
    exchange->next_kept = __atomic_exchange_n(&kept, exchange, __ATOMIC_ACQ_REL);
}

/*
 * MPI cannot take back a collective operation: if another rank begins it later, it still reads and writes the buffers.
 * So the context is freed, or as much of it as no pending operation may use. None uses the ring.
 */
void exchange_free(struct exchange *exchange, bool *keep) {
    const bool is_pending = exchange->collective.operation != NO_OPERATION;
    const struct transport *transport = &exchange->collective.transport;
    *keep = false;
    if (is_pending)
        exchange_levels_leave(&exchange->collective.levels);
    else
        exchange_levels_free(&exchange->collective.levels);
    transport->free(transport->context, is_pending);
    exchange_mover_free(&exchange->mover);
    if (!is_pending) {
        exchange_free_memory(exchange);
        return;
    }
    exchange_never_free(exchange);
}

static supply_status_t exchange_close_within(void *context, double seconds, const char *reason, bool *keep) {
    struct exchange *exchange = context;
    supply_status_t status;
    exchange_mover_stop(exchange);
    if (reason != NULL) exchange_mover_leave(exchange, reason);
    /* Spark learns why the program stops early. A Spark that has failed knows the cause, and this is not it. */
    if (exchange->owns_pair && reason != NULL && !exchange->spark_has_failed)
        status = supply_abort(exchange->pair, reason);
    else
        status = exchange->owns_pair ? supply_close_within(exchange->pair, seconds, NULL) : SUPPLY_OK;
    if (status <= SUPPLY_OK) exchange_free(exchange, keep);
    return status;
}

static void exchange_abort_pair(void *context, const char *reason, bool *keep) {
    struct exchange *exchange = context;
    exchange_mover_stop(exchange);
    if (exchange->owns_pair) supply_abort(exchange->pair, reason);
    exchange_free(exchange, keep);
}

/*
 * The transport belongs to the parent: MPI must not be called in a child. The thread is not in the child, either. What
 * it was changing cannot be freed.
 */
static void exchange_abandon(void *context) {
    struct exchange *exchange = context;
    if (exchange->mover.is_advancing) {
        supply__filler_abandon(exchange->pair);
        exchange_never_free(exchange);
        return;
    }
    supply_abandon_in_child(exchange->pair);
    exchange->collective.levels.has_rail = false;
    exchange_free_memory(exchange);
}

struct filler exchange_filler(struct exchange *exchange) {
    return (struct filler){.context = exchange,
                           .fill = exchange_fill,
                           .learn_schema = exchange_learn_schema,
                           .position = exchange_find_position,
                           .pair = exchange_pair_of,
                           .close = exchange_close_within,
                           .abort = exchange_abort_pair,
                           .abandon = exchange_abandon};
}

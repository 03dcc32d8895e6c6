/**
 * The steps *gather* and *agree* of an exchange: a window of this rank, and what all ranks make of theirs. Its caller
 * has the exchange's lock. What other ranks say is checked in agree.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mix.h"
#include "exchange_state.h"

/* While nothing comes from Spark, the others get a sign of this rank when this part of its time limit is over. */
#define SILENT_PART 0.5

void exchange_fail_later(struct exchange *exchange, const struct failure *failure) {
    exchange->failed = *failure;
    const char *name = exchange->inspected.name;
    if (strncmp(failure->text, name, strlen(name)) == 0) return;
    supply__fail(&exchange->failed, failure->status, "%s: %s", name, failure->text);
    exchange->failed.error = failure->error;
}

static supply_status_t window_check_position(const struct exchange *exchange, struct failure *failure) {
    const struct exchange_position *start = &exchange->start.exchange;
    if (!start->is_set || start->settings == exchange->fingerprint) return SUPPLY_OK;
    char text[AGREE_TEXT_BYTES];
    exchange_settings_text(&exchange->settings, text, sizeof text);
    return supply__fail(
        failure, SUPPLY_ERROR_ARGUMENT,
        "%s: the position was saved with other options of the exchange, or with another number of ranks "
        "than %u with %s: open it with the same, or use a position after the end of an epoch",
        exchange->inspected.name, exchange->round.ranks, text);
}

/* Columns are known: allocates what they need, once. SUPPLY_OK, or _MEMORY. */
static supply_status_t window_use_columns(struct exchange *exchange, struct failure *failure) {
    const struct columns *columns = &exchange->columns;
    if (exchange->has_memory || columns->schema.count == 0) return SUPPLY_OK;
    TRY(exchange_round_set_columns(&exchange->round, columns, failure));
    TRY(exchange_neighbours_set_columns(&exchange->neighbours, columns, failure));
    TRY(exchange_slot_init(&exchange->layout, columns, failure));
    const size_t offer = exchange_offer_bytes(columns->variable_count), grant = sizeof(struct grant);
    TRY(exchange_levels_reserve(&exchange->collective.levels, exchange->round.ranks * (offer > grant ? offer : grant),
                                failure));
    TRY(exchange_neighbours_reserve(&exchange->neighbours, exchange_slot_bytes(columns->whole.count, 0), failure));
    supply_status_t status = supply__filler_set_schema(exchange->handle, &columns->whole, failure);
    exchange->has_memory = status == SUPPLY_OK;
    return status;
}

/* When the first block is there, Spark has stored what the ranks must do. */
static supply_status_t window_resolve(struct exchange *exchange, struct failure *failure) {
    supply_status_t status = window_use_columns(exchange, failure);
    if (status != SUPPLY_OK || exchange->is_resolved || !exchange->columns.is_of_pair) return status;
    TRY(exchange_settings_resolve(&exchange->settings, &exchange->inspected, failure));
    exchange->is_resolved = true;
    exchange->fingerprint = exchange_settings_fingerprint(&exchange->settings, (int)exchange->round.ranks);
    return window_check_position(exchange, failure);
}

static supply_status_t window_gather(struct exchange *exchange, struct failure *failure) {
    supply_status_t status = exchange_gather(&exchange->gather, &exchange->window, failure);
    if (status == SUPPLY_OK) status = window_resolve(exchange, failure);
    if (status == SUPPLY_OK)
        status = exchange_transfer_reserve(&exchange->transfer, exchange->window.elements, failure);
    if (status != SUPPLY_OK) return status;
    const struct draw draw = {.window = &exchange->window,
                              .rank = exchange->round.rank,
                              .ranks = exchange->round.ranks,
                              .range = &exchange->range};
    return exchange_policy_prepare(&exchange->destinations, &exchange->settings, &exchange->columns, &draw, failure);
}

supply_status_t exchange_gather_window(struct exchange *exchange) {
    if (exchange->is_ready || exchange->failed.status != SUPPLY_OK) return SUPPLY_OK;
    struct failure failure = {0};
    const supply_status_t status = window_gather(exchange, &failure);
    exchange->is_ready = status == SUPPLY_OK;
    if (status == SUPPLY_AGAIN) return supply__clock_now() >= exchange->gathers_until ? SUPPLY_OK : SUPPLY_AGAIN;
    if (status == SUPPLY_ERROR_SPARK) exchange->spark_has_failed = true;
    if (status < 0) exchange_fail_later(exchange, &failure);
    return SUPPLY_OK;
}

static void window_state_window(const struct exchange *exchange, struct rank_state *state) {
    state->status = exchange->is_ready || exchange->has_rounds ? SUPPLY_OK : SUPPLY_AGAIN;
    state->epoch = exchange->has_rounds ? exchange->epoch : EPOCH_UNKNOWN;
    if (!exchange->is_ready || exchange->has_rounds) return;
    state->epoch = exchange->window.epoch;
    state->elements = exchange->window.elements;
    state->end = exchange->window.end;
}

/*
 * What all ranks have passed alike. It costs nothing beside the rest of the state, and a rank that is elsewhere than
 * the others would begin another operation than they: a text instead of a wait for ever.
 */
static uint32_t window_fingerprint_steps(const struct exchange *exchange) {
    const struct round *round = &exchange->round;
    const struct together *together = &exchange->together;
    const uint64_t steps[] = {
        exchange->epoch,      exchange->number, exchange->begins_epoch, exchange->confirms_columns,
        exchange->has_rounds, exchange->dealt,  round->number,          round->parts,
        round->quota,         together->space,  together->elements,     together->ended,
    };
    const uint32_t fingerprint = (uint32_t)supply__hash(steps, sizeof steps, 0);
    return fingerprint ? fingerprint : 1;
}

void exchange_steps_text(const struct exchange *exchange, char *text, size_t text_bytes) {
    const struct round *round = &exchange->round;
    const struct together *together = &exchange->together;
    snprintf(text, text_bytes,
             "epoch %u (begins %d), window %u (dealt %" PRIu64 ", columns %d), round %u (follows %d, parts %" PRIu64
             ", quota %" PRIu64 "), elements %" PRIu64 ", ended %u, space %u",
             exchange->epoch, exchange->begins_epoch, exchange->number, exchange->dealt, exchange->confirms_columns,
             round->number, exchange->has_rounds, round->parts, round->quota, together->elements, together->ended,
             together->space);
}

supply_status_t exchange_begin_agreement(struct exchange *exchange, struct failure *failure) {
    struct rank_state *state = &exchange->agree.mine;
    *state = (struct rank_state){
        .window = exchange->number,
        .columns = exchange->columns.whole.count,
        .text_bytes = exchange->columns.whole.text_bytes,
        .settings = exchange->fingerprint,
        .schema = exchange->columns.fingerprint,
        .space = (uint32_t)exchange->space,
        .steps = window_fingerprint_steps(exchange),
    };
    window_state_window(exchange, state);
    if (exchange->failed.status != SUPPLY_OK) {
        state->status = exchange->failed.status;
        state->error = exchange->failed.error;
    }
    exchange->step = STEP_AGREE;
    return exchange_agree_begin(&exchange->agree, &exchange->collective, failure);
}

void exchange_await_window(struct exchange *exchange) {
    exchange->gathers_until = supply__clock_after(SILENT_PART * exchange->inspected.timeout);
    exchange->step = STEP_GATHER;
}

void exchange_begin_epoch(struct exchange *exchange) {
    exchange_gather_next_epoch(&exchange->gather);
    exchange_gather_drop(&exchange->gather, &exchange->window);
    exchange->is_ready = false;
    exchange->number = 0;
    exchange->begins_epoch = true;
    exchange->is_over = false;
    exchange_await_window(exchange);
}

/* The step *agree*, and what follows from it. */

static struct together window_join(const struct agree *agree) {
    struct together together = {.epoch = EPOCH_UNKNOWN, .space = UINT32_MAX};
    for (uint32_t rank = 0; rank < agree->ranks; rank++) {
        const struct rank_state *state = &agree->all[rank];
        together.elements += state->elements;
        if (state->space < together.space) together.space = state->space;
        if (state->epoch != EPOCH_UNKNOWN) together.epoch = state->epoch;
        together.ended += state->end != WINDOW_GOES_ON;
        together.ended_data += state->end == WINDOW_ENDS_DATA;
        together.incomplete += state->status == SUPPLY_AGAIN;
        if (state->schema != 0 && together.knowing++ == 0) together.first_knowing = rank;
    }
    return together;
}

supply_status_t exchange_end(struct exchange *exchange) {
    const struct together *together = &exchange->together;
    if (together->epoch != EPOCH_UNKNOWN) exchange->epoch = together->epoch;
    /* A stream may end in the middle of an epoch, for some ranks only. */
    if (together->ended_data == 0 || together->ended_data == together->ended) {
        exchange->end = together->ended_data == 0 ? WINDOW_ENDS_EPOCH : WINDOW_ENDS_DATA;
        exchange->step = STEP_END;
    } else {
        exchange_begin_epoch(exchange);
    }
    return SUPPLY_OK;
}

/* The lowest rank that knows the columns sends them to all. */
static supply_status_t window_send_columns(struct exchange *exchange, struct failure *failure) {
    const struct agree *agree = &exchange->agree;
    const uint32_t sender = exchange->together.first_knowing;
    const size_t bytes =
        agree->all[sender].columns * sizeof *exchange->columns_of_other + agree->all[sender].text_bytes;
    exchange->step = STEP_COLUMNS;
    return exchange_send_all(&exchange->collective, sender, exchange->columns.whole.entries, exchange->columns_of_other,
                             bytes, failure);
}

/* A rank that has no memory for them says so in another agreement: the others would wait for it in the round. */
supply_status_t exchange_take_columns(struct exchange *exchange, struct failure *failure) {
    struct failure own;
    supply_status_t status = SUPPLY_OK;
    const struct rank_state *sender = &exchange->agree.all[exchange->together.first_knowing];
    if (exchange->columns.schema.count == 0)
        status = exchange_columns_set(&exchange->columns, exchange->columns_of_other, sender->columns,
                                      sender->text_bytes, exchange->inspected.name, &own);
    if (status == SUPPLY_OK) status = window_use_columns(exchange, &own);
    if (status != SUPPLY_OK) exchange_fail_later(exchange, &own);
    exchange->confirms_columns = true;
    return exchange_begin_agreement(exchange, failure);
}

/* Fills in the settings for the positions of a rank whose pair has no columns. */
static void window_learn_fingerprint(struct exchange *exchange) {
    for (uint32_t rank = 0; rank < exchange->agree.ranks && exchange->fingerprint == 0; rank++)
        exchange->fingerprint = exchange->agree.all[rank].settings;
}

static bool window_all_end(const struct exchange *exchange) {
    const struct together *together = &exchange->together;
    return together->ended == exchange->agree.ranks &&
           (together->ended_data == 0 || together->ended_data == together->ended);
}

/* How many elements each rank contributes. The last window of an epoch has all that are left. */
static void window_level(struct exchange *exchange) {
    const uint32_t ranks = exchange->agree.ranks, rank = exchange->agree.rank;
    const bool is_too_much = exchange->dealt > 0 && exchange->dealt + exchange->together.elements > ranks;
    for (uint32_t i = 0; i < ranks; i++) exchange->counts[i] = exchange->agree.all[i].elements;
    exchange->is_last = window_all_end(exchange) && !is_too_much;
    if (exchange->is_last) return;
    exchange_policy_level(&exchange->settings, exchange->counts, ranks, exchange->dealt);
    const uint64_t left_out = exchange->agree.all[rank].elements - exchange->counts[rank];
    exchange_gather_return(&exchange->gather, &exchange->window, (uint32_t)left_out);
}

/*
 * Every rank must receive as many elements of a window as the others, unless it is the last one. If there are fewer
 * elements than ranks, and some ranks have more, the window has several parts: each rank keeps the element that it gets
 * until all have one.
 */
static bool window_is_part(const struct exchange *exchange) {
    const struct together *together = &exchange->together;
    return !exchange_has_key(&exchange->settings) && together->ended < exchange->agree.ranks &&
           exchange->dealt + together->elements < exchange->agree.ranks;
}

static void window_begin_window(struct exchange *exchange) {
    const struct window_start start = {.number = exchange->number, .pair = exchange->window.start};
    const bool is_first_part = exchange->dealt == 0;
    exchange->is_part = window_is_part(exchange);
    const struct draw draw = {.window = &exchange->window,
                              .rank = exchange->round.rank,
                              .ranks = exchange->round.ranks,
                              .number = exchange->number,
                              .is_part = exchange->is_part || !is_first_part,
                              .dealt = exchange->dealt,
                              .range = &exchange->range};
    window_level(exchange);
    exchange->epoch = exchange->together.epoch;
    window_learn_fingerprint(exchange);
    if (is_first_part) {
        exchange->received = 0;
        exchange->consumed = exchange_positions_consumed(&exchange->start, exchange->epoch, exchange->number);
        exchange_positions_begin_window(&exchange->positions, exchange->epoch, &start, exchange->begins_epoch);
        exchange->begins_epoch = false;
    }
    exchange->statistics.windows++;
    exchange_policy_draw(&exchange->destinations, &exchange->settings, &draw, exchange->counts);
    exchange_begin_rounds(exchange);
}

static supply_status_t window_begin_agreed(struct exchange *exchange, struct failure *failure) {
    window_begin_window(exchange);
    if (exchange->together.knowing < exchange->agree.ranks) return window_send_columns(exchange, failure);
    return exchange_begin_round(exchange, failure);
}

/* The splitters of an epoch come from the first window of each rank. */
static supply_status_t window_send_samples(struct exchange *exchange, struct failure *failure) {
    struct range *range = &exchange->range;
    exchange_range_sample(range, &exchange->window);
    exchange->step = STEP_SAMPLE;
    return exchange_allgather(&exchange->collective, range->mine, range->all, range->of_rank * sizeof *range->mine,
                              failure);
}

supply_status_t exchange_take_samples(struct exchange *exchange, struct failure *failure) {
    exchange_range_split(&exchange->range);
    return window_begin_agreed(exchange, failure);
}

supply_status_t exchange_agreed(struct exchange *exchange, struct failure *failure) {
    if (exchange->has_rounds || exchange->confirms_columns) {
        exchange->confirms_columns = false;
        return exchange_begin_round(exchange, failure);
    }
    const struct together *together = &exchange->together;
    exchange->together = window_join(&exchange->agree);
    if (together->incomplete > 0) {
        exchange_await_window(exchange);
        return SUPPLY_OK;
    }
    if (together->elements == 0 && exchange->dealt == 0) return exchange_end(exchange);
    const bool needs_splitters = exchange->settings.policy == SUPPLY_EXCHANGE_RANGE && exchange->begins_epoch;
    return needs_splitters ? window_send_samples(exchange, failure) : window_begin_agreed(exchange, failure);
}

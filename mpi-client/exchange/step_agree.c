/** The step *agree*, and what follows from it. */
#include "exchange_state.h"

static struct together join(const struct agree *agree) {
    struct together together = {.epoch = EPOCH_UNKNOWN};
    for (uint32_t rank = 0; rank < agree->ranks; rank++) {
        const struct rank_state *state = &agree->all[rank];
        together.elements += state->elements;
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

/* The lowest rank that knows the columns sends them to those that do not. */
static supply_status_t send_columns(struct exchange *exchange, struct failure *failure) {
    const struct agree *agree = &exchange->agree;
    const uint32_t sender = exchange->together.first_knowing;
    struct part *send = exchange->transfer.send_parts, *receive = exchange->transfer.receive_parts;
    const size_t bytes = agree->all[sender].columns * sizeof *exchange->columns_of_other;
    for (uint32_t rank = 0; rank < agree->ranks; rank++) {
        const bool sends = agree->rank == sender && agree->all[rank].schema == 0;
        const bool receives = agree->all[agree->rank].schema == 0 && rank == sender;
        send[rank] = (struct part){.bytes = sends ? bytes : 0};
        receive[rank] = (struct part){.bytes = receives ? bytes : 0};
    }
    exchange->step = STEP_COLUMNS;
    return exchange_alltoallv(&exchange->collective, exchange->columns.schema.entries, send, exchange->columns_of_other,
                              receive, failure);
}

/* A rank that has no memory for them says so in another agreement: the others would wait for it in the round. */
supply_status_t exchange_take_columns(struct exchange *exchange, struct failure *failure) {
    struct failure own;
    supply_status_t status = SUPPLY_OK;
    const struct rank_state *sender = &exchange->agree.all[exchange->together.first_knowing];
    if (exchange->columns.schema.count == 0)
        status = exchange_columns_set(&exchange->columns, exchange->columns_of_other, sender->columns,
                                      exchange->inspected.name, &own);
    if (status == SUPPLY_OK) status = exchange_use_columns(exchange, &own);
    if (status != SUPPLY_OK) exchange_fail_later(exchange, &own);
    exchange->confirms_columns = true;
    return exchange_begin_agreement(exchange, failure);
}

/* Fills in the settings for the positions of a rank whose pair has no columns. */
static void learn_fingerprint(struct exchange *exchange) {
    for (uint32_t rank = 0; rank < exchange->agree.ranks && exchange->fingerprint == 0; rank++)
        exchange->fingerprint = exchange->agree.all[rank].settings;
}

static bool all_end(const struct exchange *exchange) {
    const struct together *together = &exchange->together;
    return together->ended == exchange->agree.ranks &&
           (together->ended_data == 0 || together->ended_data == together->ended);
}

/* How many elements each rank contributes. The last window of an epoch has all that are left. */
static void level(struct exchange *exchange) {
    const uint32_t ranks = exchange->agree.ranks, rank = exchange->agree.rank;
    for (uint32_t i = 0; i < ranks; i++) exchange->counts[i] = exchange->agree.all[i].elements;
    exchange->is_last = all_end(exchange);
    if (exchange->is_last) return;
    exchange_policy_level(&exchange->settings, exchange->counts, ranks);
    const uint64_t left_out = exchange->agree.all[rank].elements - exchange->counts[rank];
    exchange_gather_return(&exchange->gather, &exchange->window, (uint32_t)left_out);
}

static void begin_window(struct exchange *exchange) {
    const struct window_start start = {.number = exchange->number, .pair = exchange->window.start};
    const struct draw draw = {.window = &exchange->window,
                              .rank = exchange->round.rank,
                              .ranks = exchange->round.ranks,
                              .number = exchange->number,
                              .range = &exchange->range};
    level(exchange);
    exchange->epoch = exchange->together.epoch;
    exchange->received = 0;
    exchange->consumed = exchange_resume_consumed(&exchange->resume, exchange->epoch, exchange->number);
    learn_fingerprint(exchange);
    exchange_positions_begin_window(&exchange->positions, exchange->epoch, &start, exchange->begins_epoch);
    exchange->begins_epoch = false;
    exchange_policy_draw(&exchange->destinations, &exchange->settings, &draw, exchange->counts);
    exchange_round_begin_window(&exchange->round, &exchange->columns, &exchange->window, &exchange->destinations);
}

static supply_status_t begin_agreed(struct exchange *exchange, struct failure *failure) {
    begin_window(exchange);
    if (exchange->together.knowing < exchange->agree.ranks) return send_columns(exchange, failure);
    return exchange_begin_round(exchange, failure);
}

/* The splitters of an epoch come from the first window of each rank. */
static supply_status_t send_samples(struct exchange *exchange, struct failure *failure) {
    struct range *range = &exchange->range;
    exchange_range_sample(range, &exchange->window);
    exchange->step = STEP_SAMPLE;
    return exchange_allgather(&exchange->collective, range->mine, range->all, range->of_rank * sizeof *range->mine,
                              failure);
}

supply_status_t exchange_take_samples(struct exchange *exchange, struct failure *failure) {
    exchange_range_split(&exchange->range);
    return begin_agreed(exchange, failure);
}

/*
 * Every rank must receive as many elements of the window as the others, unless it is the last one. If there are fewer
 * elements than ranks, those that have not ended gather more. False: there are enough.
 */
static bool gather_more(struct exchange *exchange) {
    const uint32_t ranks = exchange->agree.ranks, gathering = ranks - exchange->together.ended;
    const uint64_t elements = exchange->together.elements;
    if (exchange_has_key(&exchange->settings) || elements >= ranks || gathering == 0) return false;
    if (exchange->window.end == WINDOW_GOES_ON) {
        const uint32_t missing = ranks - (uint32_t)elements;
        exchange_gather_more(&exchange->gather, &exchange->window, (missing + gathering - 1) / gathering);
        exchange->is_ready = false;
    }
    exchange_await_window(exchange);
    return true;
}

supply_status_t exchange_agreed(struct exchange *exchange, struct failure *failure) {
    if (exchange->has_rounds || exchange->confirms_columns) {
        exchange->confirms_columns = false;
        return exchange_begin_round(exchange, failure);
    }
    const struct together *together = &exchange->together;
    exchange->together = join(&exchange->agree);
    if (together->incomplete > 0) {
        exchange_await_window(exchange);
        return SUPPLY_OK;
    }
    if (together->elements == 0) return exchange_end(exchange);
    if (gather_more(exchange)) return SUPPLY_OK;
    const bool needs_splitters = exchange->settings.policy == SUPPLY_EXCHANGE_RANGE && exchange->begins_epoch;
    return needs_splitters ? send_samples(exchange, failure) : begin_agreed(exchange, failure);
}

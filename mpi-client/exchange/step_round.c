/**
 * The steps of a round: *offer*, *grant*, *copy*, *move*, *arrive* and *finish*. Its caller has the exchange's lock.
 * What other ranks say is checked in round.c and neighbours.c.
 */
#include "children.h"
#include "exchange_state.h"

/* If a rank's elements have changed, all ranks fail in the next agreement. False: none have. */
static bool round_fail_by_change(struct exchange *exchange) {
    const struct neighbours *neighbours = &exchange->neighbours;
    struct failure failure;
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        if (!neighbours->changed[rank]) continue;
        supply__fail(&failure, SUPPLY_ERROR_CONTRACT,
                     "values of held blocks of rank %u have changed: does its task write into them?", rank);
        exchange_fail_later(exchange, &failure);
        return true;
    }
    return false;
}

/* In the first round: always. In later ones, a rank that has moved all its elements has gathered the next window
 * already. */
static bool round_has_elements(const struct exchange *exchange) { return !exchange->has_rounds || exchange->left > 0; }

void exchange_begin_rounds(struct exchange *exchange) {
    const bool is_equal = !exchange_has_key(&exchange->settings);
    exchange_round_begin_window(&exchange->round, &exchange->destinations, exchange->together.elements, is_equal);
    exchange_transfer_begin_window(&exchange->transfer, &exchange->window);
}

/*
 * The most bytes that a rank receives of this window, by what all have agreed on. ALL and BALANCE give each rank the
 * same number of elements, or one more.
 */
static uint64_t round_most_bytes(const struct exchange *exchange) {
    if (exchange_has_key(&exchange->settings) || exchange->columns.variable_count > 0) return UINT64_MAX;
    return (exchange->together.elements / exchange->round.ranks + 1) * exchange->columns.fixed_bytes;
}

/* Whether every rank surely has space for them: then no grants are needed. What a rail brings is not known. */
static bool round_fits(const struct exchange *exchange) {
    return !exchange->has_rounds && !exchange->collective.levels.is_open &&
           round_most_bytes(exchange) <= exchange->together.space;
}

/* A later window is rarely larger than this one by more: with its memory it needs none. */
#define ROUND_RESERVE_PART 8

/* Reserves memory for what this rank is offered, and for windows like this one. */
static supply_status_t round_reserve(struct exchange *exchange, uint64_t offered, struct failure *failure) {
    const size_t capacity = exchange->round.capacity;
    uint64_t bytes = round_most_bytes(exchange);
    if (bytes > capacity) bytes = offered + offered / ROUND_RESERVE_PART;
    if (bytes > capacity) bytes = capacity;
    if (offered <= exchange->space) return SUPPLY_OK;
    TRY(exchange_neighbours_reserve(&exchange->neighbours, exchange_slot_bytes(exchange->columns.whole.count, bytes),
                                    failure));
    exchange->space = bytes;
    return SUPPLY_OK;
}

supply_status_t exchange_begin_round(struct exchange *exchange, struct failure *failure) {
    struct round *round = &exchange->round;
    const bool has_failed = exchange->failed.status != SUPPLY_OK;
    const bool offers = !has_failed && round_has_elements(exchange);
    exchange_round_offer(round, offers ? &exchange->destinations : NULL, has_failed);
    if (offers) exchange_transfer_measure(&exchange->transfer);
    exchange->step = STEP_OFFER;
    return exchange_alltoall(&exchange->collective, round->offers, round->offers_in,
                             round->width * sizeof *round->offers, failure);
}

/*
 * All rails of a node bring as much as its ranks take, and one rail of many by chance more than others. It must not
 * bring more than this part of what a rank takes: rounds halve. But one element for each rank of the node cannot be
 * less.
 */
#define RAIL_FACTOR 2

static bool round_rail_fits(const struct exchange *exchange, uint64_t brought, uint64_t elements) {
    const struct levels *levels = &exchange->collective.levels;
    const uint64_t headers = exchange->round.ranks * sizeof(message_header);
    if (brought <= RAIL_FACTOR * exchange->round.capacity + headers) return true;
    return elements <= levels->peers && brought <= levels->messages_bytes && brought <= INT32_MAX;
}

/* Whether this rank has space for what it is offered, and for what its rail brings. SUPPLY_OK, or _MEMORY. */
static supply_status_t round_take(struct exchange *exchange, uint64_t *verdict, struct failure *failure) {
    struct levels *levels = &exchange->collective.levels;
    const struct round *round = &exchange->round;
    const uint64_t offered = exchange_round_offered(round, &exchange->columns);
    uint64_t elements = 0, brought = 0;
    if (levels->is_open)
        brought = exchange_levels_offered(levels, &exchange->columns, round->width * sizeof *round->offers, &elements);
    *verdict = GRANT_LESS;
    if (offered > round->capacity || !round_rail_fits(exchange, brought, elements)) return SUPPLY_OK;
    *verdict = GRANT_NOTHING;
    TRY(round_reserve(exchange, offered, failure));
    TRY(exchange_levels_reserve_messages(levels, brought, failure));
    *verdict = GRANT_FITS;
    return SUPPLY_OK;
}

/* Without memory a rank takes nothing, so the others reach the next agreement, too. */
static supply_status_t round_grant(struct exchange *exchange, struct failure *failure) {
    struct round *round = &exchange->round;
    struct failure own;
    uint64_t verdict;
    if (round_take(exchange, &verdict, &own) != SUPPLY_OK) exchange_fail_later(exchange, &own);
    exchange_round_grant(round, verdict);
    exchange->step = STEP_GRANT;
    return exchange_alltoall(&exchange->collective, round->grants, round->grants_in, sizeof *round->grants, failure);
}

static supply_status_t round_fail_by_library(const struct exchange *exchange, const char *what,
                                             struct failure *failure) {
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "%s: %s: use the same libsupply_exchange on all ranks",
                        exchange->inspected.name, what);
}

/* All offers move: lays out the slot, and tells the neighbours. */
static supply_status_t round_place(struct exchange *exchange, struct failure *failure) {
    const struct neighbours *neighbours = &exchange->neighbours;
    const struct slot slot = {exchange->slot.address, neighbours->reserved - neighbours->table_bytes};
    const uint64_t offered = exchange_round_offered(&exchange->round, &exchange->columns);
    if (exchange->keeps ? offered > 0
                        : offered > exchange->round.capacity ||
                              !exchange_slot_lay_out(&exchange->layout, &exchange->columns, &exchange->round, &slot))
        return round_fail_by_library(exchange, "other ranks send more than this rank has space for", failure);
    exchange_transfer_begin(&exchange->transfer, &exchange->layout);
    exchange->step = STEP_COPY;
    exchange_begin_wait(&exchange->collective);
    return SUPPLY_OK;
}

static supply_status_t round_decide(struct exchange *exchange, struct failure *failure) {
    switch (exchange_round_decide(&exchange->round)) {
        case GRANT_FITS:
            return round_place(exchange, failure);
        case GRANT_LESS:
            if (exchange->round.parts <= UINT32_MAX) return exchange_begin_round(exchange, failure);
            return round_fail_by_library(exchange, "another rank offers one element that is larger than a slot",
                                         failure);
        default:
            exchange->has_rounds = true;
            return exchange_continue(exchange);
    }
}

/* This rank's elements are copied and packed. */
static void round_leave_elements(struct exchange *exchange) {
    if (!round_has_elements(exchange)) return;
    exchange->left = exchange_round_advance(&exchange->round, &exchange->destinations);
    if (exchange->left > 0) return;
    exchange_gather_drop(&exchange->gather, &exchange->window);
    exchange->is_ready = false;
}

static void round_count_bytes(struct exchange *exchange) {
    supply_exchange_statistics_t *statistics = &exchange->statistics;
    statistics->rounds++;
    for (uint32_t rank = 0; rank < exchange->round.ranks; rank++) {
        const uint64_t bytes =
            exchange_offered_bytes(exchange_offer(exchange->round.offers, &exchange->round, rank), &exchange->columns);
        *(exchange->neighbours.all[rank].ring != NULL ? &statistics->copied_bytes : &statistics->sent_bytes) += bytes;
    }
}

static supply_status_t round_copy(struct exchange *exchange, struct failure *failure) {
    TRY(exchange_transfer_copy(&exchange->transfer, failure));
    round_count_bytes(exchange);
    round_leave_elements(exchange);
    exchange->step = STEP_MOVE;
    return !exchange->neighbours.are_all ? exchange_transfer_send(&exchange->transfer, failure) : SUPPLY_OK;
}

/* Makes a block of what has arrived, unless an earlier run has consumed it. */
static void round_deliver(struct exchange *exchange, uint64_t skipped) {
    const uint64_t kept = exchange->layout.elements - skipped;
    exchange->filled = (struct filled){
        .epoch = exchange->epoch,
        .partition = exchange->number,
        .first_element = exchange->received + skipped,
        .element_count = (uint32_t)kept,
        .bytes = exchange_slot_finish(&exchange->layout, &exchange->columns, skipped),
    };
    struct failure failure;
    supply_status_t status = SUPPLY_ERROR_CONTRACT;
    if (exchange->filled.bytes > 0)
        status = exchange_children_unpack(&exchange->columns, &exchange->layout.slot, (uint32_t)kept,
                                          &exchange->filled.bytes, &failure);
    else
        supply__fail(&failure, status, "another rank has sent other lengths than it has announced");
    if (status == SUPPLY_OK)
        exchange->step = STEP_DELIVER;
    else
        exchange_fail_later(exchange, &failure);
}

/* The ranks have agreed with this window that the epoch ends, so no further agreement is needed. */
supply_status_t exchange_continue(struct exchange *exchange) {
    if (exchange->is_over) return exchange_end(exchange);
    exchange_await_window(exchange);
    return SUPPLY_OK;
}

/* No agreement follows in which the others could be told of a failure. */
static bool round_ends_data(const struct exchange *exchange) {
    const struct together *together = &exchange->together;
    return exchange->is_last && !exchange->has_rounds && together->ended_data > 0 &&
           together->ended_data == together->ended;
}

static supply_status_t round_finish(struct exchange *exchange, struct failure *failure) {
    const uint64_t arrived = exchange->layout.elements;
    uint64_t skipped = exchange->consumed > exchange->received ? exchange->consumed - exchange->received : 0;
    if (skipped > arrived) skipped = arrived;
    exchange->has_rounds = !exchange_round_is_last(&exchange->round);
    exchange_round_end(&exchange->round);
    const bool has_changed = round_fail_by_change(exchange);
    if (exchange->is_part) {
        for (uint32_t rank = 0; rank < exchange->round.ranks; rank++) exchange->dealt += exchange->counts[rank];
        exchange->keeps = arrived > 0;
        return exchange_continue(exchange);
    }
    exchange->dealt = 0;
    exchange->keeps = false;
    if (!has_changed && skipped < arrived) round_deliver(exchange, skipped);
    exchange->received += arrived;
    /* With ALL and BALANCE all ranks name one window. The last one may give some nothing: those stay in front of it. */
    const bool is_complete = !exchange->has_rounds && (exchange_has_key(&exchange->settings) || arrived > 0);
    exchange_positions_receive(&exchange->positions, exchange->epoch, exchange->received, skipped < arrived,
                               is_complete);
    if (!exchange->has_rounds) exchange->number++;
    exchange->is_over = exchange->is_last && !exchange->has_rounds && exchange->failed.status == SUPPLY_OK;
    if (exchange->failed.status != SUPPLY_OK && round_ends_data(exchange)) {
        *failure = exchange->failed;
        return failure->status;
    }
    return exchange->step == STEP_DELIVER ? SUPPLY_OK : exchange_continue(exchange);
}

static supply_status_t round_move(struct exchange *exchange, struct failure *failure) {
    if (exchange->left == 0) exchange_gather_window(exchange);
    TRY(exchange_transfer_receive(&exchange->transfer, failure));
    exchange->step = STEP_ARRIVE;
    exchange_begin_wait(&exchange->collective);
    return SUPPLY_OK;
}

static supply_status_t round_arrive(struct exchange *exchange, struct failure *failure) {
    if (exchange->left == 0) exchange_gather_window(exchange);
    TRY(exchange_transfer_arrive(&exchange->transfer, failure));
    return round_finish(exchange, failure);
}

supply_status_t exchange_continue_round(struct exchange *exchange, struct failure *failure) {
    switch (exchange->step) {
        case STEP_OFFER:
            TRY(exchange_poll(&exchange->collective, failure));
            return round_fits(exchange) ? round_place(exchange, failure) : round_grant(exchange, failure);
        case STEP_GRANT:
            TRY(exchange_poll(&exchange->collective, failure));
            return round_decide(exchange, failure);
        case STEP_COPY:
            return round_copy(exchange, failure);
        case STEP_MOVE:
            return round_move(exchange, failure);
        default:
            return round_arrive(exchange, failure);
    }
}

/**
 * The steps of a round: *offer*, *grant*, *pack*, *count*, *place*, *move*, *arrive* and *finish*. It runs in the
 * thread that uses the handle, without a lock. What other ranks say is checked in round.c and neighbours.c.
 */
#include "children.h"
#include "exchange_state.h"

static struct cargo cargo_of(struct exchange *exchange) {
    return (struct cargo){.columns = &exchange->columns,
                          .destinations = &exchange->destinations,
                          .round = &exchange->round,
                          .neighbours = &exchange->neighbours};
}

/* The rank still does its part of the round, and tells the others: what it sends them is wrong. */
static void tell_change(struct exchange *exchange) {
    struct neighbours *neighbours = &exchange->neighbours;
    neighbours->has_changed = neighbours->changed[neighbours->rank] = 1;
}

/* If a rank's elements have changed, all ranks fail in the next agreement. False: none have. */
static bool round_fail_by_change(struct exchange *exchange) {
    const struct neighbours *neighbours = &exchange->neighbours;
    struct failure failure;
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        if (neighbours->changed[rank] == 0 && !exchange_round_has_change(&exchange->round, rank)) continue;
        supply__fail(&failure, SUPPLY_ERROR_CONTRACT,
                     "values of held blocks of rank %u have changed: does its task write into them?", rank);
        exchange_fail_later(exchange, &failure);
        return true;
    }
    return false;
}

/* If all ranks are neighbours, nothing is left for the transport. */
static bool has_strangers(const struct exchange *exchange) {
    const uint64_t ranks = exchange->round.ranks;
    return exchange->together.links < ranks * (ranks - 1);
}

/* In the first round: always. In later ones, a rank that has moved all its elements has gathered the next window
 * already. */
static bool has_elements(const struct exchange *exchange) { return !exchange->has_rounds || exchange->left > 0; }

static supply_status_t round_count(struct exchange *exchange, struct failure *failure) {
    struct round *round = &exchange->round;
    const struct cargo cargo = cargo_of(exchange);
    exchange_round_select(round, &exchange->columns, &exchange->window, &exchange->destinations);
    if (!exchange_pack_counts(&exchange->transfer, &cargo)) tell_change(exchange);
    /* Before the counts, which are the last message if no rank has a neighbour. */
    if (has_strangers(exchange) && !exchange_pack_others(&exchange->transfer, &cargo)) tell_change(exchange);
    exchange_round_count(round, &exchange->destinations,
                         exchange->neighbours.has_changed ? LEFT_CHANGED : exchange->failed.status != SUPPLY_OK);
    exchange->step = STEP_COUNT;
    return exchange_alltoall(&exchange->collective, round->messages, round->messages_in,
                             round->width * sizeof *round->messages, failure);
}

/*
 * The most bytes that a rank receives of this window, by what all have agreed on. ALL and BALANCE give each rank the
 * same number of elements, or one more.
 */
static uint64_t most_bytes(const struct exchange *exchange) {
    const struct together *together = &exchange->together;
    if (exchange_has_key(&exchange->settings)) return UINT64_MAX;
    return (together->elements / exchange->round.ranks + 1) * together->largest;
}

/* Whether every rank surely has space for them. */
static bool round_fits(const struct exchange *exchange) {
    return !exchange->has_rounds && exchange->together.largest > 0 && most_bytes(exchange) <= exchange->together.space;
}

/*
 * Reserves memory for what this rank has granted, or for all windows like this one, so that they need no grants. False:
 * there is none.
 */
static bool round_reserve(struct exchange *exchange) {
    const uint64_t most = most_bytes(exchange);
    const size_t bytes = most <= exchange->round.capacity ? most : exchange_round_granted(&exchange->round);
    struct failure failure;
    if (bytes <= exchange->space) return true;
    if (exchange_neighbours_reserve(&exchange->neighbours, exchange_slot_bytes(exchange->columns.whole.count, bytes),
                                    &failure) != SUPPLY_OK) {
        exchange_fail_later(exchange, &failure);
        return false;
    }
    exchange->space = bytes;
    return true;
}

supply_status_t exchange_begin_round(struct exchange *exchange, struct failure *failure) {
    struct round *round = &exchange->round;
    if (exchange->failed.status == SUPPLY_OK && has_elements(exchange))
        exchange_round_offer(round, &exchange->columns, &exchange->window, &exchange->destinations);
    else
        exchange_round_offer_nothing(round);
    if (round_fits(exchange)) {
        exchange_round_grant_all(round);
        return round_count(exchange, failure);
    }
    exchange->step = STEP_OFFER;
    return exchange_alltoall(&exchange->collective, round->offers, round->offers_in, sizeof *round->offers, failure);
}

/* grant: fills in the grants. Without memory a rank takes nothing, so the others reach the next agreement, too. */
static supply_status_t send_grants(struct exchange *exchange, void (*grant)(struct round *round),
                                   struct failure *failure) {
    struct round *round = &exchange->round;
    grant(round);
    if (!round_reserve(exchange)) exchange_round_grant_nothing(round);
    exchange->step = STEP_GRANT;
    return exchange_alltoall(&exchange->collective, round->grants, round->grants_in, sizeof *round->grants, failure);
}

static supply_status_t begin_move(struct exchange *exchange, struct failure *failure) {
    const struct cargo cargo = cargo_of(exchange);
    /* What is copied into the slots of others is stored after they have named them. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    exchange->copied = 0;
    exchange->step = STEP_MOVE;
    exchange->transfer.moving = has_strangers(exchange) ? 0 : exchange->columns.buffer_count;
    if (!has_strangers(exchange)) return SUPPLY_OK;
    return exchange_move(&exchange->transfer, &cargo, &exchange->layout, &exchange->collective, failure);
}

/* Copies the elements for a rank, if it is a neighbour. */
static supply_status_t copy(struct exchange *exchange, uint32_t rank, struct failure *failure) {
    if (exchange->neighbours.all[rank].ring == NULL) return SUPPLY_OK;
    const struct cargo cargo = cargo_of(exchange);
    const enum copied copied = exchange_copy(&exchange->transfer, &cargo, rank);
    if (copied == COPIED_CHANGED) tell_change(exchange);
    if (copied != COPIED_NOTHING) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                        "%s: rank %u has named a place outside of its ring: use the same libsupply_exchange on all "
                        "ranks",
                        exchange->inspected.name, rank);
}

/* Lays out the slot, and tells the neighbours. */
static supply_status_t place(struct exchange *exchange, struct failure *failure) {
    struct neighbours *neighbours = &exchange->neighbours;
    const struct slot slot = {exchange->slot.address, neighbours->reserved};
    if (!exchange_round_check(&exchange->round, &exchange->columns) ||
        !exchange_slot_lay_out(&exchange->layout, &exchange->columns, &exchange->round, &slot))
        return supply__fail(
            failure, SUPPLY_ERROR_CONTRACT,
            "%s: another rank sends more than this rank has granted: use the same libsupply_exchange on "
            "all ranks",
            exchange->inspected.name);
    exchange_neighbours_place(neighbours, &exchange->layout, &exchange->columns, &exchange->round);
    exchange->step = STEP_PLACE;
    /* The block that was in this slot is read before the message. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (exchange->together.links > 0)
        TRY(exchange_alltoall(&exchange->collective, neighbours->places, neighbours->places_in,
                              neighbours->width * sizeof *neighbours->places, failure));
    /* While the places of the others are under way. */
    return copy(exchange, exchange->round.rank, failure);
}

/* Copies for one rank in each call. This rank's own elements are there already. */
static supply_status_t copy_next(struct exchange *exchange, struct failure *failure) {
    const uint32_t rank = exchange->copied++;
    const supply_status_t status = rank == exchange->round.rank ? SUPPLY_OK : copy(exchange, rank, failure);
    if (status != SUPPLY_OK || exchange->copied < exchange->round.ranks || !has_elements(exchange)) return status;
    /* The window is not needed any more. */
    exchange->left = exchange_round_advance(&exchange->round, &exchange->destinations);
    if (exchange->left > 0) return SUPPLY_OK;
    exchange_gather_drop(&exchange->gather, &exchange->window);
    exchange->is_ready = false;
    return SUPPLY_OK;
}

/* Makes a block of what has arrived, unless an earlier run has consumed it. */
static void deliver(struct exchange *exchange, uint64_t skipped) {
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
static bool is_end_of_data(const struct exchange *exchange) {
    const struct together *together = &exchange->together;
    return exchange->is_last && !exchange->has_rounds && together->ended_data > 0 &&
           together->ended_data == together->ended;
}

static supply_status_t round_finish(struct exchange *exchange, struct failure *failure) {
    const uint64_t arrived = exchange->layout.elements;
    uint64_t skipped = exchange->consumed > exchange->received ? exchange->consumed - exchange->received : 0;
    if (skipped > arrived) skipped = arrived;
    exchange->has_rounds = !exchange_round_is_last(&exchange->round);
    exchange->round.number++;
    if (!round_fail_by_change(exchange) && skipped < arrived) deliver(exchange, skipped);
    exchange->received += arrived;
    /* With ALL and BALANCE all ranks name one window. The last one may give some nothing: those stay in front of it. */
    const bool is_complete = !exchange->has_rounds && (exchange_has_key(&exchange->settings) || arrived > 0);
    exchange_positions_receive(&exchange->positions, exchange->epoch, exchange->received, skipped < arrived,
                               is_complete);
    if (!exchange->has_rounds) exchange->number++;
    exchange->is_over = exchange->is_last && !exchange->has_rounds && exchange->failed.status == SUPPLY_OK;
    if (exchange->failed.status != SUPPLY_OK && is_end_of_data(exchange)) {
        *failure = exchange->failed;
        return failure->status;
    }
    return exchange->step == STEP_DELIVER ? SUPPLY_OK : exchange_continue(exchange);
}

/* What the transport moves. */
static supply_status_t move_buffers(struct exchange *exchange, struct failure *failure) {
    struct transfer *transfer = &exchange->transfer;
    const uint32_t count = exchange->columns.buffer_count;
    while (transfer->moving < count) {
        TRY(exchange_poll(&exchange->collective, failure));
        if (++transfer->moving == count) break;
        const struct cargo cargo = cargo_of(exchange);
        TRY(exchange_move(transfer, &cargo, &exchange->layout, &exchange->collective, failure));
    }
    return SUPPLY_OK;
}

static supply_status_t move(struct exchange *exchange, struct failure *failure) {
    const uint32_t ranks = exchange->round.ranks;
    struct neighbours *neighbours = &exchange->neighbours;
    supply_status_t status = SUPPLY_OK;
    if (exchange->copied < ranks)
        status = copy_next(exchange, failure);
    else if (exchange->left == 0)
        exchange_gather_window(exchange);
    if (status == SUPPLY_OK) status = move_buffers(exchange, failure);
    if (exchange->copied < ranks) return status == SUPPLY_AGAIN ? SUPPLY_OK : status;
    if (status != SUPPLY_OK) return status;
    if (exchange->together.links == 0) return round_finish(exchange, failure);
    exchange->step = STEP_ARRIVE;
    /* What was copied is seen before the message. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return exchange_allgather(&exchange->collective, &neighbours->has_changed, neighbours->changed,
                              sizeof neighbours->has_changed, failure);
}

static supply_status_t arrive(struct exchange *exchange, struct failure *failure) {
    if (exchange->left == 0) exchange_gather_window(exchange);
    TRY(exchange_poll(&exchange->collective, failure));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return round_finish(exchange, failure);
}

/*
 * With ALL and BALANCE, no rank may receive more of a round than the others: they need each other for the next round.
 * So if a rank cannot take everything, all take one element.
 */
static bool must_grant_one(const struct exchange *exchange) {
    const struct round *round = &exchange->round;
    return !exchange_has_key(&exchange->settings) && !round->grants_one && !exchange_round_fits(round);
}

supply_status_t exchange_continue_round(struct exchange *exchange, struct failure *failure) {
    if (exchange->step == STEP_MOVE) return move(exchange, failure);
    if (exchange->step == STEP_ARRIVE) return arrive(exchange, failure);
    if (exchange->collective.is_pending) TRY(exchange_poll(&exchange->collective, failure));
    switch (exchange->step) {
        case STEP_OFFER:
            return send_grants(exchange, exchange_round_grant, failure);
        case STEP_GRANT:
            return must_grant_one(exchange) ? send_grants(exchange, exchange_round_grant_one, failure)
                                            : round_count(exchange, failure);
        case STEP_COUNT:
            return place(exchange, failure);
        default:
            return begin_move(exchange, failure);
    }
}

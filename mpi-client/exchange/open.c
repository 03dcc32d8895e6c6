/** supply_exchange_over(). */
#include "exchange.h"

#include <stdlib.h>

#include "exchange_state.h"
#include "filler.h"
#include "sort/sorter.h"

/* Slots of the ring of exchanged elements: two for the program, and one to receive. */
#define SLOTS 3

/* Of a window. In a round the slot must take what others send at random, which is rarely more than this. */
#define SLOT_PART 4

static supply_status_t inspect(struct exchange *exchange, supply_t *pair, struct failure *failure) {
    struct filler_pair *inspected = &exchange->inspected;
    if (supply_filler_inspect(pair, inspected) != SUPPLY_OK) {
        *inspected = (struct filler_pair){.name = "the exchange", .timeout = EXCHANGE_TIMEOUT_WITHOUT_PAIR};
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "the handle is not that of an open pair: %s",
                           supply_error(pair));
    }
    exchange->pair = pair;
    if (inspected->has_failed)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "%s: it has failed, so close it and open it again: %s",
                           inspected->name, supply_error(pair));
    if (!inspected->accepts_exchange)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "%s: set options.exchange to true before supply_open()",
                           inspected->name);
    if (inspected->rank >= 0 && (uint32_t)inspected->rank != exchange->round.rank)
        return supply_fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "%s belongs to rank %d, but this is rank %u of %u in the communicator of the exchange: it must "
            "have all ranks of the job, in their order",
            inspected->name, inspected->rank, exchange->round.rank, exchange->round.ranks);
    if (inspected->has_received)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "%s: open the exchange before anything is received from the pair", inspected->name);
    return SUPPLY_OK;
}

static void fail(void *exchange, const struct failure *failure) { exchange_fail_later(exchange, failure); }

/* The program reads the sorter, which reads the exchange. */
static supply_status_t sort(struct exchange *exchange, struct failure *failure) {
    const struct exchange_settings *settings = &exchange->settings;
    const struct sorter_options options = {.column = settings->column,
                                           .memory_bytes = settings->memory_bytes,
                                           .folder = settings->spill_folder,
                                           .block_bytes = settings->window_bytes,
                                           .settings = &exchange->fingerprint,
                                           .header = exchange->inspected.header,
                                           .start = exchange->inspected.start,
                                           .fail = fail,
                                           .exchange = exchange};
    return exchange_sort(&exchange->outer, &options, failure);
}

/* Everything that can fail on one rank alone. */
static supply_status_t prepare(struct exchange *exchange, const supply_exchange_options_t *options,
                               struct failure *failure) {
    const struct filler_pair *pair = &exchange->inspected;
    const uint32_t rank = exchange->round.rank, ranks = exchange->round.ranks;
    supply_status_t status = exchange_settings(&exchange->settings, options, pair, failure);
    if (status != SUPPLY_OK) return status;
    const size_t window_bytes = exchange->settings.window_bytes;
    const size_t capacity = window_bytes + window_bytes / SLOT_PART;
    exchange->gather = (struct gather){.pair = exchange->pair,
                                       .inspected = pair,
                                       .columns = &exchange->columns,
                                       .window_bytes = window_bytes,
                                       .position = pair->start};
    exchange->gather.position.exchange = (struct exchange_position){0};
    exchange_gather_begin(&exchange->gather, &exchange->window);
    exchange->resume.start = pair->start;
    /* The sorter drops what an earlier run has consumed. */
    if (exchange->settings.policy == SUPPLY_EXCHANGE_RANGE) exchange->resume.start.exchange.elements = 0;
    exchange->number = pair->start.exchange.window;
    exchange->begins_epoch = true;
    status = exchange_round_init(&exchange->round, rank, ranks, capacity, failure);
    if (status == SUPPLY_OK && exchange->settings.policy == SUPPLY_EXCHANGE_RANGE)
        status = exchange_range_init(&exchange->range, ranks, failure);
    if (status == SUPPLY_OK) status = exchange_transfer_init(&exchange->transfer, ranks, window_bytes, failure);
    if (status != SUPPLY_OK) return status;
    exchange->counts = calloc(ranks, sizeof *exchange->counts);
    exchange->columns_of_other = calloc(SCHEMA_COLUMNS_MAX, sizeof *exchange->columns_of_other);
    if (exchange->counts == NULL || exchange->columns_of_other == NULL ||
        !exchange_gather_init(&exchange->gather, ranks))
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    const struct filler filler = exchange_filler(exchange);
    status = supply_filler_open(&exchange->handle, &filler, pair, exchange_slot_bytes(capacity), SLOTS, failure);
    if (status != SUPPLY_OK) return status;
    exchange->outer = exchange->handle;
    return exchange->settings.policy == SUPPLY_EXCHANGE_RANGE ? sort(exchange, failure) : SUPPLY_OK;
}

static supply_status_t agree(struct exchange *exchange, struct failure *failure) {
    struct rank_state *state = &exchange->agree.mine;
    *state = (struct rank_state){.status = exchange->failed.status, .error = exchange->failed.error};
    exchange_resume_state(&exchange->resume, state);
    if (state->status == SUPPLY_OK)
        state->settings = exchange_settings_fingerprint(&exchange->settings, (int)exchange->agree.ranks);
    exchange->step = STEP_OPEN;
    supply_status_t status = exchange_agree_begin(&exchange->agree, &exchange->collective, failure);
    if (status == SUPPLY_OK) status = exchange_await(exchange, failure);
    if (status == SUPPLY_INTERRUPTED)
        supply_fail(failure, status, "%s: the program interrupted the opening of the exchange",
                    exchange->collective.name);
    return status;
}

static supply_status_t open_exchange(struct exchange *exchange, supply_t *pair,
                                     const supply_exchange_options_t *options, struct failure *failure) {
    struct failure own = {0};
    supply_status_t status = inspect(exchange, pair, &own);
    exchange->collective.name = exchange->inspected.name;
    exchange->collective.limit = FILLER_LIMIT_FACTOR * exchange->inspected.timeout;
    if (status == SUPPLY_OK) status = prepare(exchange, options, &own);
    if (status != SUPPLY_OK) exchange_fail_later(exchange, &own);
    return agree(exchange, failure);
}

/* Leaves the pair to the program, which can only close it. */
static void leave_pair(struct exchange *exchange, const struct failure *failure) {
    if (exchange->pair != NULL) supply_filler_fail(exchange->pair, failure);
    bool keep;
    if (exchange->outer != NULL)
        supply_abort(exchange->outer, failure->text);
    else
        exchange_free(exchange, &keep);
}

supply_status_t supply_exchange_over(supply_t **supply, const struct transport *transport,
                                     const supply_exchange_options_t *options) {
    struct failure failure = {0};
    const uint32_t rank = (uint32_t)transport->rank, ranks = (uint32_t)transport->ranks;
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL || exchange_agree_init(&exchange->agree, rank, ranks, &failure) != SUPPLY_OK) {
        transport->free(transport->context, false);
        free(exchange);
        return SUPPLY_ERROR_MEMORY;
    }
    exchange->collective.transport = *transport;
    exchange->round.rank = rank;
    exchange->round.ranks = ranks;
    const supply_status_t status = open_exchange(exchange, supply != NULL ? *supply : NULL, options, &failure);
    if (status != SUPPLY_OK || supply == NULL) {
        leave_pair(exchange, &failure);
        return status;
    }
    exchange->owns_pair = true;
    supply_filler_claim(exchange->pair);
    *supply = exchange->outer;
    return SUPPLY_OK;
}

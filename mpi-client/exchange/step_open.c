/**
 * Opens an exchange on all ranks together, in the steps *open*, *meet*, *link*, *boards* and *rails*. It runs in the
 * thread that opens, before there is another one. What other ranks say is checked where it is used.
 */
#include <stdlib.h>
#include <unistd.h>

#include "exchange.h"
#include "exchange_state.h"
#include "sort/sorter.h"

/* The exchange is open. A rank that has no memory for the numbers says so in the first agreement. */
static supply_status_t exchange_opened(struct exchange *exchange) {
    struct levels *levels = &exchange->collective.levels;
    struct failure failure;
    size_t bytes = exchange->range.of_rank * sizeof *exchange->range.mine;
    if (bytes < AGREE_TEXT_BYTES) bytes = AGREE_TEXT_BYTES;
    if (exchange_levels_reserve(levels, levels->nodes * bytes, &failure) != SUPPLY_OK)
        exchange_fail_later(exchange, &failure);
    exchange->statistics.copying_ranks = exchange->neighbours.count;
    exchange->statistics.forwarded_ranks = levels->is_open ? levels->ranks - levels->peers : 0;
    exchange_await_window(exchange);
    return SUPPLY_OK;
}

supply_status_t exchange_meet(struct exchange *exchange, struct failure *failure) {
    struct collective *collective = &exchange->collective;
    struct neighbours *neighbours = &exchange->neighbours;
    struct levels *levels = &collective->levels;
    TRY(exchange_poll(collective, failure));
    switch (exchange->step++) {
        case STEP_MEET:
            exchange_neighbours_map(neighbours);
            return exchange_allgather(collective, neighbours->mine_linked, neighbours->links,
                                      neighbours->link_words * sizeof *neighbours->links, failure);
        case STEP_LINK:
            exchange_neighbours_link(neighbours);
            if (!exchange_levels_find(levels)) return exchange_opened(exchange);
            exchange_levels_make_board(levels, exchange->round.capacity);
            return exchange_allgather(collective, &levels->mine, levels->cards, sizeof levels->mine, failure);
        case STEP_BOARDS:
            exchange_levels_open(levels, &collective->transport);
            return exchange_allgather(collective, &levels->opens, levels->opened, sizeof levels->opens, failure);
        default:
            exchange_levels_decide(levels);
            return exchange_opened(exchange);
    }
}

/* Slots of the ring of exchanged elements: two for the program, and one to receive. */
#define SLOTS 3

/* A slot has space for a table of that many neighbours, whatever the columns; of more, if there are fewer columns. */
#define TABLE_SENDERS_MOST 32

/* Of a window. In a round the slot must take what others send at random, which is rarely more than this. */
#define SLOT_PART 4

static supply_status_t exchange_inspect(struct exchange *exchange, supply_t *pair, struct failure *failure) {
    struct filler_pair *inspected = &exchange->inspected;
    if (supply__filler_inspect(pair, inspected) != SUPPLY_OK) {
        *inspected = (struct filler_pair){.name = "the exchange", .timeout = EXCHANGE_TIMEOUT_WITHOUT_PAIR};
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "the handle is not that of an open pair: %s",
                            supply_error(pair));
    }
    exchange->pair = pair;
    if (inspected->has_failed)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "%s: it has failed, so close it and open it again: %s",
                            inspected->name, supply_error(pair));
    if (!inspected->accepts_exchange)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "%s: set options.exchange to true before supply_open()",
                            inspected->name);
    /* Of ranks that read one ring, each exchanges with those that have its number in the other groups. */
    if (inspected->rank >= 0 && (uint32_t)inspected->rank / inspected->readers != exchange->round.rank)
        return supply__fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "%s belongs to rank %d, but this is rank %u of %u in the communicator of the exchange: it must "
            "have %s, in their order",
            inspected->name, inspected->rank, exchange->round.rank, exchange->round.ranks,
            inspected->readers > 1 ? "the ranks with this one's reader number in all groups" : "all ranks of the job");
    if (inspected->has_received)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "%s: open the exchange before anything is received from the pair", inspected->name);
    return SUPPLY_OK;
}

static void exchange_fail_sorted(void *context, const struct failure *failure) {
    struct exchange *exchange = context;
    pthread_mutex_lock(&exchange->mover.lock);
    exchange_fail_later(exchange, failure);
    pthread_mutex_unlock(&exchange->mover.lock);
}

/* The program reads the sorter, which reads the exchange. */
static supply_status_t exchange_open_sorter(struct exchange *exchange, struct failure *failure) {
    const struct exchange_settings *settings = &exchange->settings;
    const struct sorter_options options = {.column = settings->column,
                                           .memory_bytes = settings->memory_bytes,
                                           .folder = settings->spill_folder,
                                           .block_bytes = settings->window_bytes,
                                           .settings = &exchange->seen.fingerprint,
                                           .header = exchange->inspected.header,
                                           .start = exchange->inspected.start,
                                           .fail = exchange_fail_sorted,
                                           .exchange = exchange};
    return exchange_sort(&exchange->outer, &options, failure);
}

/* The handle, whose ring the neighbours may map. */
static supply_status_t exchange_open_handle(struct exchange *exchange, size_t slot_bytes, struct failure *failure) {
    const struct filler filler = exchange_filler(exchange);
    const bool is_shared = exchange->settings.copies && exchange->round.ranks > 1;
    int fd = -1;
    const supply_status_t status = supply__filler_open(&exchange->handle, &filler, &exchange->inspected, slot_bytes,
                                                       SLOTS, is_shared ? &fd : NULL, failure);
    if (status != SUPPLY_OK) {
        if (fd >= 0) close(fd);
        return status;
    }
    exchange->outer = exchange->handle;
    exchange_neighbours_offer(&exchange->neighbours, fd, supply__filler_header(exchange->handle), slot_bytes, SLOTS);
    /* The end of an epoch has no more. */
    return exchange_neighbours_reserve(&exchange->neighbours, sizeof(struct block_header), failure);
}

/* Everything that can fail on one rank alone. */
static supply_status_t exchange_prepare(struct exchange *exchange, const supply_exchange_options_t *options,
                                        struct failure *failure) {
    const struct filler_pair *pair = &exchange->inspected;
    const uint32_t rank = exchange->round.rank, ranks = exchange->round.ranks;
    TRY(exchange_settings(&exchange->settings, options, pair, failure));
    const size_t window_bytes = exchange->settings.window_bytes;
    const size_t capacity = window_bytes + window_bytes / SLOT_PART;
    exchange->gather = (struct gather){.pair = exchange->pair,
                                       .inspected = pair,
                                       .columns = &exchange->columns,
                                       .window_bytes = window_bytes,
                                       .position = pair->start};
    exchange->gather.position.exchange = (struct exchange_position){0};
    exchange_gather_begin(&exchange->gather, &exchange->window);
    exchange->start = pair->start;
    /* The sorter drops what an earlier run has consumed. */
    if (exchange->settings.policy == SUPPLY_EXCHANGE_RANGE) exchange->start.exchange.elements = 0;
    exchange->number = pair->start.exchange.window;
    exchange->begins_epoch = true;
    TRY(exchange_round_init(&exchange->round, rank, ranks, capacity, failure));
    if (exchange->settings.policy == SUPPLY_EXCHANGE_RANGE) TRY(exchange_range_init(&exchange->range, ranks, failure));
    exchange->transfer = (struct transfer){.columns = &exchange->columns,
                                           .destinations = &exchange->destinations,
                                           .round = &exchange->round,
                                           .neighbours = &exchange->neighbours,
                                           .collective = &exchange->collective};
    TRY(exchange_transfer_init(&exchange->transfer, window_bytes, capacity, failure));
    exchange->counts = calloc(ranks, sizeof *exchange->counts);
    exchange->columns_of_other = calloc(1, SCHEMA_BYTES_MAX);
    if (exchange->counts == NULL || exchange->columns_of_other == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    const size_t table_bytes =
        exchange_neighbours_table_bytes(ranks < TABLE_SENDERS_MOST ? ranks : TABLE_SENDERS_MOST, SCHEMA_ENTRIES_MAX);
    TRY(exchange_open_handle(exchange, exchange_slot_bytes(SCHEMA_ENTRIES_MAX, capacity + table_bytes), failure));
    return exchange->settings.policy == SUPPLY_EXCHANGE_RANGE ? exchange_open_sorter(exchange, failure) : SUPPLY_OK;
}

static supply_status_t exchange_agree_on_opening(struct exchange *exchange, struct failure *failure) {
    struct rank_state *state = &exchange->agree.mine;
    *state = (struct rank_state){.status = exchange->failed.status,
                                 .error = exchange->failed.error,
                                 .epoch = exchange->start.epoch,
                                 .window = exchange->start.exchange.window};
    if (state->status == SUPPLY_OK)
        state->settings = exchange_settings_fingerprint(&exchange->settings, (int)exchange->agree.ranks);
    exchange->step = STEP_OPEN;
    supply_status_t status = exchange_agree_begin(&exchange->agree, &exchange->collective, failure);
    if (status == SUPPLY_OK) status = exchange_await(exchange, failure);
    if (status == SUPPLY_INTERRUPTED)
        supply__fail(failure, status, "%s: the program interrupted the opening of the exchange",
                     exchange->collective.name);
    return status;
}

static supply_status_t exchange_open_all(struct exchange *exchange, supply_t *pair,
                                         const supply_exchange_options_t *options, struct failure *failure) {
    struct failure own = {0};
    supply_status_t status = exchange_inspect(exchange, pair, &own);
    exchange->collective.name = exchange->inspected.name;
    exchange->collective.limit = FILLER_LIMIT_FACTOR * exchange->inspected.timeout;
    if (status == SUPPLY_OK) status = exchange_prepare(exchange, options, &own);
    if (status != SUPPLY_OK) exchange_fail_later(exchange, &own);
    return exchange_agree_on_opening(exchange, failure);
}

/* Leaves the pair to the program, which can only close it. */
static void exchange_leave_pair(struct exchange *exchange, const struct failure *failure) {
    if (exchange->pair != NULL) supply__filler_fail(exchange->pair, failure);
    bool keep;
    if (exchange->outer != NULL)
        supply_abort(exchange->outer, failure->text);
    else
        exchange_free(exchange, &keep);
}

supply_status_t supply__exchange_over(supply_t **supply, const struct transport *transport,
                                      const supply_exchange_options_t *options) {
    struct failure failure = {0};
    const uint32_t rank = (uint32_t)transport->rank, ranks = (uint32_t)transport->ranks;
    struct exchange *exchange = calloc(1, sizeof *exchange);
    /* exchange_free_memory() would close descriptor 0. */
    if (exchange != NULL) exchange->neighbours.fd = exchange->collective.levels.fd = -1;
    if (exchange == NULL || exchange_agree_init(&exchange->agree, rank, ranks, &failure) != SUPPLY_OK ||
        exchange_neighbours_init(&exchange->neighbours, rank, ranks, &failure) != SUPPLY_OK ||
        exchange_levels_init(&exchange->collective.levels, &exchange->neighbours, &failure) != SUPPLY_OK) {
        transport->free(transport->context, false);
        if (exchange != NULL) exchange_free_memory(exchange);
        return SUPPLY_ERROR_MEMORY;
    }
    exchange->collective.transport = *transport;
    exchange->collective.operation = NO_OPERATION;
    exchange_mover_init(exchange);
    exchange->round.rank = rank;
    exchange->round.ranks = exchange->statistics.ranks = ranks;
    const supply_status_t status = exchange_open_all(exchange, supply != NULL ? *supply : NULL, options, &failure);
    if (status != SUPPLY_OK || supply == NULL) {
        exchange_leave_pair(exchange, &failure);
        return status;
    }
    exchange->owns_pair = true;
    supply__filler_claim(exchange->pair);
    exchange->statistics.window_bytes = exchange->settings.window_bytes;
    exchange_publish(exchange);
    *supply = exchange->outer;
    return SUPPLY_OK;
}

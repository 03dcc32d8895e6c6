/**
 * Reads blocks of the pair by supply.h and adds their rows to the next window. It holds a block until no window uses
 * it, and copies it if the ring would otherwise have no slot left. Its caller has the exchange's lock. Blocks are
 * checked (R3) before it gets them.
 */
#include "gather.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static uint32_t gather_column_count(const struct gather *gather) { return gather->columns->schema.count; }

void exchange_gather_begin(const struct gather *gather, struct gathered_window *window) {
    exchange_window_clear(window);
    window->start = gather->position;
}

static void gather_free_unused(struct gather *gather) {
    struct held_block **link = &gather->oldest;
    gather->newest = NULL;
    while (*link != NULL) {
        struct held_block *held = *link;
        if (held->users == 0) {
            *link = held->next;
            exchange_free_held(held, gather->pair, gather_column_count(gather));
        } else {
            gather->newest = held;
            link = &held->next;
        }
    }
}

/* Without a free slot in its ring the task cannot continue: its oldest block moves to private memory. */
static supply_status_t gather_copy_oldest(struct gather *gather, struct failure *failure) {
    struct held_block *held = gather->oldest;
    while (held != NULL && held->copy != NULL) held = held->next;
    if (held == NULL)
        return supply__fail(failure, SUPPLY_ERROR_ALL_HELD, "%s: all slots are held, but not by the exchange",
                            gather->inspected->name);
    const supply_status_t status = exchange_copy_held(held, gather->pair, gather_column_count(gather), failure);
    return status == SUPPLY_OK ? status
                               : supply__fail(failure, status, "%s: %s", gather->inspected->name, failure->text);
}

static supply_status_t gather_hold(struct gather *gather, const supply_block_t *block, struct failure *failure) {
    supply_status_t status = exchange_columns_learn(gather->columns, gather->pair, gather->inspected->name, failure);
    if (status != SUPPLY_OK) return status;
    struct held_block *held = exchange_hold(gather->pair, block, gather->columns, failure);
    if (held == NULL) return failure->status;
    if (gather->newest != NULL)
        gather->newest->next = held;
    else
        gather->oldest = held;
    gather->newest = held;
    gather->open = held;
    gather->next_row = 0;
    return SUPPLY_OK;
}

/* The next block of the pair, or an end. */
static supply_status_t gather_receive(struct gather *gather, struct failure *failure) {
    supply_block_t block;
    const supply_status_t status = supply_try_next(gather->pair, &block);
    switch (status) {
        case SUPPLY_OK:
            return gather_hold(gather, &block, failure);
        case SUPPLY_END_OF_EPOCH:
            gather->ended = WINDOW_ENDS_EPOCH;
            gather->ended_epoch = block.epoch;
            return exchange_columns_learn(gather->columns, gather->pair, gather->inspected->name, failure);
        case SUPPLY_END_OF_DATA:
            gather->ended = WINDOW_ENDS_DATA;
            return exchange_columns_learn(gather->columns, gather->pair, gather->inspected->name, failure);
        case SUPPLY_ERROR_ALL_HELD:
            return gather_copy_oldest(gather, failure);
        case SUPPLY_AGAIN:
            return status;
        default:
            /* supply__fail() takes it from there. */
            errno = supply_error_errno(gather->pair);
            return supply__fail(failure, status, "%s", supply_error(gather->pair));
    }
}

static uint32_t gather_rows_that_fit(const struct gather *gather, size_t space) {
    const struct held_block *held = gather->open;
    const uint32_t rest = held->block.element_count - gather->next_row;
    if (gather->columns->variable_count == 0) {
        const size_t fitting = space / gather->columns->fixed_bytes;
        return fitting < rest ? (uint32_t)fitting : rest;
    }
    if (exchange_rows_bytes(held, gather->columns, gather->next_row, rest) <= space) return rest;
    uint32_t fitting = 0, too_many = rest;
    while (too_many - fitting > 1) {
        const uint32_t middle = fitting + (too_many - fitting) / 2;
        if (exchange_rows_bytes(held, gather->columns, gather->next_row, middle) <= space)
            fitting = middle;
        else
            too_many = middle;
    }
    return fitting;
}

static size_t gather_space_left(const struct gather *gather, const struct gathered_window *window) {
    return window->bytes < gather->window_bytes ? gather->window_bytes - window->bytes : 0;
}

static supply_status_t gather_fail_by_size(const struct gather *gather, struct failure *failure) {
    const supply_block_t *block = &gather->open->block;
    return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                        "%s: element %" PRIu64 " of partition %u has %" PRIu64
                        " bytes, the window of the exchange %zu: set window_bytes "
                        "larger on all ranks",
                        gather->inspected->name, block->first_element + gather->next_row, block->partition,
                        exchange_rows_bytes(gather->open, gather->columns, gather->next_row, 1), gather->window_bytes);
}

/* After the agreement that follows, exchange_gather_return() cannot fail. */
static supply_status_t gather_complete(struct gather *gather, struct gathered_window *window, struct failure *failure) {
    if (window->piece_count > gather->returned_capacity) {
        struct piece *returned = reallocarray(gather->returned, window->piece_count, sizeof *returned);
        if (returned == NULL)
            return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", gather->inspected->name);
        gather->returned = returned;
        gather->returned_capacity = window->piece_count;
    }
    if (exchange_window_complete(window)) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", gather->inspected->name);
}

/* The position in the pair's data in front of that row. */
static struct position gather_position_of(const struct gather *gather, const struct held_block *held, uint32_t row) {
    return (struct position){.epoch = held->block.epoch,
                             .inside = true,
                             .partition = held->block.partition,
                             .element = held->block.first_element + row,
                             .plan = gather->inspected->header->plan};
}

static supply_status_t gather_add(struct gather *gather, struct gathered_window *window, const struct piece *piece,
                                  struct failure *failure) {
    const uint64_t bytes = exchange_rows_bytes(piece->held, gather->columns, piece->row, piece->count);
    if (bytes > gather_space_left(gather, window)) return exchange_fail_by_change(failure);
    if (!exchange_window_add(window, piece->held, piece->row, piece->count))
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", gather->inspected->name);
    window->bytes += bytes;
    window->epoch = piece->held->block.epoch;
    gather->position = gather_position_of(gather, piece->held, piece->row + piece->count);
    return SUPPLY_OK;
}

/* They were in a window before, so they fit. */
static supply_status_t gather_add_returned(struct gather *gather, struct gathered_window *window,
                                           struct failure *failure) {
    for (uint32_t i = 0; i < gather->returned_count; i++) {
        TRY(gather_add(gather, window, &gather->returned[i], failure));
        gather->returned[i].held->users--;
    }
    gather->returned_count = 0;
    return SUPPLY_OK;
}

/* Adds rows of the open block. */
static supply_status_t gather_add_rows(struct gather *gather, struct gathered_window *window, struct failure *failure) {
    struct held_block *held = gather->open;
    const size_t space = gather_space_left(gather, window);
    const uint32_t count = gather_rows_that_fit(gather, space);
    if (count == 0 && space == gather->window_bytes) return gather_fail_by_size(gather, failure);
    if (count == 0) return gather_complete(gather, window, failure);
    const struct piece piece = {.held = held, .row = gather->next_row, .count = count};
    TRY(gather_add(gather, window, &piece, failure));
    gather->next_row += count;
    const bool is_full = gather->next_row < held->block.element_count ||
                         gather_space_left(gather, window) < gather->columns->fixed_bytes;
    if (gather->next_row == held->block.element_count) {
        held->users--;
        gather->open = NULL;
    }
    return is_full ? gather_complete(gather, window, failure) : SUPPLY_OK;
}

supply_status_t exchange_gather(struct gather *gather, struct gathered_window *window, struct failure *failure) {
    while (!window->is_complete) {
        if (gather->returned_count > 0) {
            TRY(gather_add_returned(gather, window, failure));
        } else if (gather->open != NULL) {
            TRY(gather_add_rows(gather, window, failure));
        } else if (gather->ended != WINDOW_GOES_ON) {
            window->end = gather->ended;
            if (gather->ended == WINDOW_ENDS_EPOCH) window->epoch = gather->ended_epoch;
            TRY(gather_complete(gather, window, failure));
        } else {
            TRY(gather_receive(gather, failure));
        }
    }
    return SUPPLY_OK;
}

void exchange_gather_return(struct gather *gather, struct gathered_window *window, uint32_t count) {
    const uint32_t first = window->elements - count;
    uint32_t pieces = window->piece_count;
    while (pieces > 0 && window->pieces[pieces - 1].start + window->pieces[pieces - 1].count > first) pieces--;
    for (uint32_t i = pieces; i < window->piece_count; i++) {
        struct piece *piece = &window->pieces[i];
        const uint32_t stays = piece->start < first ? first - piece->start : 0;
        gather->returned[gather->returned_count++] =
            (struct piece){.held = piece->held, .row = piece->row + stays, .count = piece->count - stays};
        /* If the task has changed lengths, that is noticed when the window is drawn. */
        window->bytes -= exchange_rows_bytes(piece->held, gather->columns, piece->row + stays, piece->count - stays);
        /* A returned piece uses its block. If a part of the block stays in the window, the block has one more user. */
        if (stays > 0) piece->held->users++;
        piece->count = stays;
        if (stays > 0) pieces++;
    }
    window->piece_count = pieces;
    window->elements = first;
    if (count > 0) gather->position = gather_position_of(gather, gather->returned[0].held, gather->returned[0].row);
}

/* Called when all ranks have ended the epoch. Until then the position of this rank stays at its end. */
void exchange_gather_next_epoch(struct gather *gather) {
    if (gather->ended != WINDOW_ENDS_EPOCH) return;
    gather->ended = WINDOW_GOES_ON;
    gather->position = (struct position){.epoch = gather->ended_epoch + 1, .plan = gather->inspected->header->plan};
}

void exchange_gather_drop(struct gather *gather, struct gathered_window *window) {
    for (uint32_t i = 0; i < window->piece_count; i++) window->pieces[i].held->users--;
    exchange_gather_begin(gather, window);
    gather_free_unused(gather);
}

void exchange_gather_free(struct gather *gather) {
    free(gather->returned);
    while (gather->oldest != NULL) {
        struct held_block *next = gather->oldest->next;
        exchange_free_held(gather->oldest, NULL, gather_column_count(gather));
        gather->oldest = next;
    }
    gather->newest = gather->open = NULL;
}

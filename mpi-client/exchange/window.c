/**
 * Holds blocks of the pair, and keeps lists of rows of them as windows. The task may change the ring: whoever reads a
 * value checks it against the length that was read before. Its caller has the exchange's lock.
 */
#include "window.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "children.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* The windows of a column are valid until the block is released: a copied block has its own lists. */
static void window_free_windows(const supply_column_t *columns, uint32_t column_count) {
    for (uint32_t i = 0; i < column_count; i++) free((void *)columns[i].windows);
}

static void window_free_packed(supply_column_t *columns, uint32_t column_count) {
    for (uint32_t i = 0; i < column_count; i++) exchange_children_free(&columns[i]);
}

void exchange_free_held(struct held_block *held, supply_t *pair, uint32_t column_count) {
    if (held->copy == NULL && pair != NULL) supply_release(pair, &held->block);
    if (held->copy != NULL) window_free_windows(held->columns, column_count);
    window_free_packed(held->columns, column_count);
    free(held->copy);
    free(held->columns);
    free(held);
}

static supply_status_t window_list_columns(supply_t *pair, const supply_block_t *block, const struct columns *columns,
                                           supply_column_t *list, struct failure *failure) {
    for (uint32_t i = 0; i < columns->schema.count; i++) {
        supply_column_t column;
        supply_status_t status = supply_column(pair, block, (int)i, &column);
        if (status != SUPPLY_OK) return supply__fail(failure, status, "%s", supply_error(pair));
        if (column.child_count > 0) status = exchange_children_pack(pair, block, columns, &column, failure);
        if (status != SUPPLY_OK) return status;
        list[i] = column;
    }
    return SUPPLY_OK;
}

struct held_block *exchange_hold(supply_t *pair, const supply_block_t *block, const struct columns *columns,
                                 struct failure *failure) {
    struct held_block *held = calloc(1, sizeof *held);
    supply_column_t *list = calloc(columns->schema.count, sizeof *list);
    if (held == NULL || list == NULL)
        supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    else if (window_list_columns(pair, block, columns, list, failure) == SUPPLY_OK) {
        *held = (struct held_block){.block = *block, .columns = list, .users = 1};
        for (uint32_t i = 0; i < columns->schema.count; i++)
            if (list[i].child_count > 0) held->packed_bytes += list[i].data_bytes;
        return held;
    }
    supply_release(pair, block);
    if (list != NULL) window_free_packed(list, columns->schema.count);
    free(list);
    free(held);
    return NULL;
}

/* The same address in the copy. */
static const void *window_moved(const struct held_block *held, const uint8_t *copy, const void *address) {
    return address ? copy + ((const uint8_t *)address - (const uint8_t *)held->block.address) : NULL;
}

/* The columns of the copy. False: out of memory. */
static bool window_move_columns(const struct held_block *held, const uint8_t *copy, supply_column_t *columns,
                                uint32_t column_count) {
    for (uint32_t i = 0; i < column_count; i++) {
        const supply_column_t *from = &held->columns[i];
        supply_column_t *column = &columns[i];
        *column = *from;
        column->validity = window_moved(held, copy, from->validity);
        column->windows = NULL;
        if (from->child_count > 0) continue; /* packed in memory of its own */
        column->offsets = window_moved(held, copy, from->offsets);
        column->data = window_moved(held, copy, from->data);
        column->views = window_moved(held, copy, from->views);
        if (from->window_count == 0) continue;
        supply_window_t *windows = malloc(from->window_count * sizeof *windows);
        if (windows == NULL) return false;
        memcpy(windows, from->windows, from->window_count * sizeof *windows);
        column->windows = windows;
    }
    return true;
}

/* Fresh memory is mostly page faults: with huge pages, 512 times fewer. NULL: out of memory. */
static uint8_t *window_allocate(size_t bytes) {
    void *memory;
    if (bytes < HUGE_PAGE) return malloc(bytes);
    if (posix_memalign(&memory, HUGE_PAGE, bytes) != 0) return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

supply_status_t exchange_copy_held(struct held_block *held, supply_t *pair, uint32_t column_count,
                                   struct failure *failure) {
    uint8_t *copy = window_allocate(held->block.bytes);
    supply_column_t *columns = calloc(column_count, sizeof *columns);
    if (copy != NULL) memcpy(copy, held->block.address, held->block.bytes);
    if (copy == NULL || columns == NULL || !window_move_columns(held, copy, columns, column_count)) {
        if (columns != NULL) window_free_windows(columns, column_count);
        free(columns);
        free(copy);
        return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                            "out of memory for a copy of a block of %zu bytes: set window_bytes smaller",
                            held->block.bytes);
    }
    free(held->columns);
    held->columns = columns;
    held->copy = copy;
    return supply_release(pair, &held->block);
}

static const uint8_t *window_view_value(const supply_column_t *column, uint32_t row, uint32_t bytes) {
    const supply_view_t *view = &column->views[row];
    if (bytes <= VIEW_INLINE_MAX) return column->views[row].start;
    const int32_t number = SHARED_READ(view->window), offset = SHARED_READ(view->offset);
    if ((uint32_t)number >= column->window_count || offset < 0) return NULL;
    const supply_window_t *window = &column->windows[number];
    if ((uint64_t)offset + bytes > window->bytes) return NULL;
    return (const uint8_t *)window->address + offset;
}

const uint8_t *exchange_value(const supply_column_t *column, uint32_t row, uint32_t bytes) {
    if (column->views != NULL) return window_view_value(column, row, bytes);
    const int32_t begin = SHARED_READ(column->offsets[row]);
    if (begin < 0 || (uint64_t)begin + bytes > column->data_bytes) return NULL;
    return (const uint8_t *)column->data + begin;
}

supply_status_t exchange_fail_by_change(struct failure *failure) {
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                        "values of held blocks have changed: does the task write into them?");
}

uint64_t exchange_rows_bytes(const struct held_block *held, const struct columns *columns, uint32_t first,
                             uint32_t count) {
    uint64_t bytes = (uint64_t)count * columns->fixed_bytes;
    for (uint32_t i = 0; i < columns->schema.count && columns->variable_count > 0; i++) {
        const supply_column_t *column = &held->columns[i];
        if (column->views != NULL) {
            for (uint32_t row = first; row < first + count; row++) bytes += exchange_value_bytes(column, row);
        } else if (column->offsets != NULL) {
            const int32_t begin = SHARED_READ(column->offsets[first]);
            const int32_t end = SHARED_READ(column->offsets[first + count]);
            if (end > begin) bytes += (uint64_t)end - (uint64_t)begin;
        }
    }
    return bytes;
}

/* With that number of cells for each piece, a search rarely needs a second step, whatever the sizes of the pieces. */
#define CELLS_OF_PIECE 4

/* Doubles the capacity of a list until it has space for `count` items. NULL: out of memory. */
static void *window_grow(void *list, uint32_t *capacity, uint32_t count, size_t item_bytes) {
    if (count <= *capacity) return list;
    const uint32_t grown = count > 2 * *capacity ? count : 2 * *capacity;
    void *larger = realloc(list, grown * item_bytes);
    if (larger != NULL) *capacity = grown;
    return larger;
}

bool exchange_window_add(struct gathered_window *window, struct held_block *held, uint32_t row, uint32_t count) {
    struct piece *pieces =
        window_grow(window->pieces, &window->piece_capacity, window->piece_count + 1, sizeof *window->pieces);
    if (pieces == NULL) return false;
    window->pieces = pieces;
    pieces[window->piece_count++] = (struct piece){.held = held, .row = row, .count = count, .start = window->elements};
    window->elements += count;
    held->users++;
    return true;
}

bool exchange_window_complete(struct gathered_window *window) {
    window->shift = 0;
    while (window->elements >> window->shift > CELLS_OF_PIECE * (uint64_t)window->piece_count) window->shift++;
    const uint32_t count = (window->elements >> window->shift) + 1;
    uint32_t *cells = window_grow(window->cells, &window->cell_capacity, count, sizeof *cells);
    if (cells == NULL) return false;
    window->cells = cells;
    uint32_t piece = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = i << window->shift;
        while (piece + 1 < window->piece_count && window->pieces[piece + 1].start <= index) piece++;
        cells[i] = piece;
    }
    window->is_complete = true;
    return true;
}

void exchange_window_clear(struct gathered_window *window) {
    window->piece_count = 0;
    window->elements = 0;
    window->bytes = 0;
    window->epoch = EPOCH_UNKNOWN;
    window->end = WINDOW_GOES_ON;
    window->is_complete = false;
}

void exchange_window_free(struct gathered_window *window) {
    free(window->pieces);
    free(window->cells);
    *window = (struct gathered_window){0};
}

#include "window.h"

#include <stdlib.h>

/* With that number of cells for each piece, a search rarely needs a second step, whatever the sizes of the pieces. */
#define CELLS_OF_PIECE 4

/* Doubles the capacity of a list until it has space for `count` items. NULL: out of memory. */
static void *grow(void *list, uint32_t *capacity, uint32_t count, size_t item_bytes) {
    if (count <= *capacity) return list;
    const uint32_t grown = count > 2 * *capacity ? count : 2 * *capacity;
    void *larger = realloc(list, grown * item_bytes);
    if (larger != NULL) *capacity = grown;
    return larger;
}

/* Adds the lengths of a column to the sizes. Returns their sum. */
static uint64_t add_lengths(uint32_t *sizes, const supply_column_t *column, uint32_t row, uint32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = exchange_value_bytes(column, row + i);
        sizes[i] += bytes;
        sum += bytes;
    }
    return sum;
}

bool exchange_window_measure(struct gathered_window *window, const struct columns *columns,
                             const struct held_block *held, uint32_t row, uint32_t count, uint64_t *bytes) {
    *bytes = (uint64_t)count * columns->fixed_bytes;
    if (columns->variable_count == 0) return true;
    uint32_t *sizes = grow(window->sizes, &window->size_capacity, window->elements + count, sizeof *sizes);
    if (sizes == NULL) return false;
    window->sizes = sizes;
    sizes += window->elements;
    for (uint32_t i = 0; i < count; i++) sizes[i] = (uint32_t)columns->fixed_bytes;
    for (uint32_t i = 0; i < columns->schema.count && *bytes <= UINT32_MAX; i++)
        if (exchange_is_variable(&columns->plans[i])) *bytes += add_lengths(sizes, &held->columns[i], row, count);
    return true;
}

bool exchange_window_add(struct gathered_window *window, struct held_block *held, uint32_t row, uint32_t count) {
    struct piece *pieces =
        grow(window->pieces, &window->piece_capacity, window->piece_count + 1, sizeof *window->pieces);
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
    uint32_t *cells = grow(window->cells, &window->cell_capacity, count, sizeof *cells);
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
    free(window->sizes);
    *window = (struct gathered_window){0};
}

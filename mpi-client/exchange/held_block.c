#include "held_block.h"

#include <stdlib.h>
#include <string.h>

/* The windows of a column are valid until the block is released: a copied block has its own list. */
static void free_windows(struct held_block *held, uint32_t column_count) {
    for (uint32_t i = 0; held->copy != NULL && i < column_count; i++) free((void *)held->columns[i].windows);
}

void exchange_free_held(struct held_block *held, supply_t *pair, uint32_t column_count) {
    if (held->copy == NULL && pair != NULL) supply_release(pair, &held->block);
    free_windows(held, column_count);
    free(held->copy);
    free(held->columns);
    free(held);
}

struct held_block *exchange_hold(supply_t *pair, const supply_block_t *block, const struct columns *columns,
                                 struct failure *failure) {
    struct held_block *held = calloc(1, sizeof *held);
    supply_column_t *list = calloc(columns->schema.count, sizeof *list);
    supply_status_t status = SUPPLY_OK;
    if (held == NULL || list == NULL) status = supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < columns->schema.count && status == SUPPLY_OK; i++) {
        status = supply_column(pair, block, (int)i, &list[i]);
        if (status != SUPPLY_OK) supply_fail(failure, status, "%s", supply_error(pair));
    }
    if (status != SUPPLY_OK) {
        supply_release(pair, block);
        free(list);
        free(held);
        return NULL;
    }
    *held = (struct held_block){.block = *block, .columns = list, .users = 1};
    return held;
}

/* The same place in the copy. */
static const void *moved(const struct held_block *held, const uint8_t *copy, const void *place) {
    return place ? copy + ((const uint8_t *)place - (const uint8_t *)held->block.address) : NULL;
}

supply_status_t exchange_copy_held(struct held_block *held, supply_t *pair, uint32_t column_count,
                                   struct failure *failure) {
    uint8_t *copy = malloc(held->block.bytes);
    supply_window_t **windows = calloc(column_count, sizeof *windows);
    bool is_whole = copy != NULL && windows != NULL;
    for (uint32_t i = 0; i < column_count && is_whole; i++) {
        const supply_column_t *column = &held->columns[i];
        if (column->window_count == 0) continue;
        windows[i] = malloc(column->window_count * sizeof **windows);
        is_whole = windows[i] != NULL;
        if (is_whole) memcpy(windows[i], column->windows, column->window_count * sizeof **windows);
    }
    if (!is_whole) {
        for (uint32_t i = 0; windows != NULL && i < column_count; i++) free(windows[i]);
        free(windows);
        free(copy);
        return supply_fail(failure, SUPPLY_ERROR_MEMORY,
                           "out of memory for a copy of a block of %zu bytes: set window_bytes smaller",
                           held->block.bytes);
    }
    memcpy(copy, held->block.address, held->block.bytes);
    for (uint32_t i = 0; i < column_count; i++) {
        supply_column_t *column = &held->columns[i];
        column->validity = moved(held, copy, column->validity);
        column->offsets = moved(held, copy, column->offsets);
        column->data = moved(held, copy, column->data);
        if (column->views != NULL) column->views = column->data;
        column->windows = windows[i];
    }
    free(windows);
    supply_release(pair, &held->block);
    held->copy = copy;
    return SUPPLY_OK;
}

static const uint8_t *view_value(const supply_column_t *column, uint32_t row, uint32_t bytes) {
    supply_view_t view;
    memcpy(&view, &column->views[row], sizeof view);
    if (bytes <= VIEW_INLINE_MAX) return column->views[row].start;
    if ((uint32_t)view.window >= column->window_count || view.offset < 0) return NULL;
    const supply_window_t *window = &column->windows[view.window];
    if ((uint64_t)view.offset + bytes > window->bytes) return NULL;
    return (const uint8_t *)window->address + view.offset;
}

const uint8_t *exchange_value(const supply_column_t *column, uint32_t row, uint32_t bytes) {
    if (column->views != NULL) return view_value(column, row, bytes);
    const volatile int32_t *offsets = column->offsets;
    const int32_t begin = offsets[row];
    if (begin < 0 || (uint64_t)begin + bytes > column->data_bytes) return NULL;
    return (const uint8_t *)column->data + begin;
}

uint64_t exchange_rows_bytes(const struct held_block *held, const struct columns *columns, uint32_t first,
                             uint32_t count) {
    uint64_t bytes = (uint64_t)count * columns->fixed_bytes;
    for (uint32_t i = 0; i < columns->schema.count && columns->variable_count > 0; i++) {
        const supply_column_t *column = &held->columns[i];
        if (column->views != NULL) {
            for (uint32_t row = first; row < first + count; row++) bytes += exchange_value_bytes(column, row);
        } else if (column->offsets != NULL) {
            const volatile int32_t *offsets = column->offsets;
            const int32_t begin = offsets[first], end = offsets[first + count];
            if (end > begin) bytes += (uint64_t)end - (uint64_t)begin;
        }
    }
    return bytes;
}

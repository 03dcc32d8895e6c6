/**
 * Single values of a held block: supply_value() and supply_gather(). Offsets and views lie in memory that the task may
 * change, so each is read once, checked again, and used. They need no lock: a block that is held stays.
 */
#include <string.h>

#include "base/shared.h"
#include "block/foreign_files.h"
#include "supply.h"

/* Offsets are in shared memory and were checked once. Here each is read once, checked again, and used. */
static bool find_by_offsets(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    const int32_t begin = SHARED_READ(column->offsets[index]), end = SHARED_READ(column->offsets[index + 1]);
    if (begin < 0 || end < begin || (size_t)end > column->data_bytes) return false;
    *data = (const uint8_t *)column->data + begin;
    *bytes = (size_t)(end - begin);
    return true;
}

/* The same for a view. */
static bool find_by_view(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    const supply_view_t *shared = &column->views[index];
    const supply_view_t view = {.bytes = SHARED_READ(shared->bytes),
                                .window = SHARED_READ(shared->window),
                                .offset = SHARED_READ(shared->offset)};
    *bytes = (size_t)view.bytes;
    if (!supply__view_is_inline(&view)) return supply__view_find(&view, column->windows, column->window_count, data);
    *data = column->views[index].start;
    return true;
}

/* Where value `index` is. False: what was checked has changed since. */
static bool value_find(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    return column->views != NULL ? find_by_view(column, index, data, bytes)
                                 : find_by_offsets(column, index, data, bytes);
}

/* False: the column has no values of any length, or not those elements. */
static bool values_has_values(const supply_column_t *column, uint32_t first, uint32_t count) {
    return column != NULL && (column->views != NULL || column->offsets != NULL) && column->child_count == 0 &&
           first <= column->element_count && count <= column->element_count - first;
}

supply_status_t supply_value_checked(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    if (data == NULL || bytes == NULL || !values_has_values(column, index, 1)) return SUPPLY_ERROR_ARGUMENT;
    return value_find(column, index, data, bytes) ? SUPPLY_OK : SUPPLY_ERROR_CONTRACT;
}

supply_status_t supply_gather(const supply_column_t *column, uint32_t first, uint32_t count, int64_t *ends, void *to,
                              size_t to_bytes) {
    if (!values_has_values(column, first, count)) return SUPPLY_ERROR_ARGUMENT;
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const void *data;
        size_t bytes;
        if (!value_find(column, first + i, &data, &bytes)) return SUPPLY_ERROR_CONTRACT;
        if (to != NULL) {
            if (bytes > to_bytes - at) return SUPPLY_ERROR_ARGUMENT;
            memcpy((uint8_t *)to + at, data, bytes);
        }
        at += bytes;
        if (ends != NULL) ends[i] = (int64_t)at;
    }
    return SUPPLY_OK;
}

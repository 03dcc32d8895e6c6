#include "arrow_views.h"

#include <string.h>

#include "block_views.h"

/* Validity and views, the windows, and the lengths of the windows. */
enum { BUFFERS_BESIDE_WINDOWS = 3 };

size_t supply_arrow_views_bytes(uint32_t element_count, uint32_t window_count) {
    return element_count * sizeof(supply_view_t) + window_count * sizeof(int64_t) +
           (window_count + (size_t)BUFFERS_BESIDE_WINDOWS) * sizeof(const void *);
}

static bool copy_views(const supply_column_t *column, supply_view_t *copy) {
    memcpy(copy, column->views, column->element_count * sizeof *copy);
    const void *data;
    for (uint32_t i = 0; i < column->element_count; i++)
        if ((copy[i].bytes < 0 || copy[i].bytes > VIEW_INLINE_MAX) &&
            !supply_view_find(&copy[i], column->windows, column->window_count, &data))
            return false;
    return true;
}

bool supply_arrow_views(const supply_column_t *column, void *memory, struct ArrowArray *array) {
    supply_view_t *views = memory;
    int64_t *lengths = (int64_t *)(views + column->element_count);
    const void **buffers = (const void **)(lengths + column->window_count);
    if (!copy_views(column, views)) return false;
    buffers[0] = column->validity;
    buffers[1] = views;
    for (uint32_t i = 0; i < column->window_count; i++) {
        buffers[2 + i] = column->windows[i].address;
        lengths[i] = (int64_t)column->windows[i].bytes;
    }
    buffers[2 + column->window_count] = lengths;
    array->buffers = buffers;
    array->n_buffers = (int64_t)column->window_count + BUFFERS_BESIDE_WINDOWS;
    return true;
}

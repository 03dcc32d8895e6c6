#include "arrow_views.h"

#include <string.h>

#include "block_views.h"

/* Validity and views, the windows, and the lengths of the windows. */
enum { BUFFERS_BESIDE_WINDOWS = 3 };

size_t supply_arrow_views_bytes(uint32_t element_count, uint32_t window_count) {
    return element_count * sizeof(supply_view_t) + window_count * sizeof(int64_t) +
           (window_count + (size_t)BUFFERS_BESIDE_WINDOWS) * sizeof(const void *);
}

static const uint8_t *start_of(const supply_column_t *column, const supply_view_t *view) {
    return (const uint8_t *)column->windows[view->window].address + view->offset;
}

static bool copy_views(const supply_column_t *column, supply_view_t *copy) {
    memcpy(copy, column->views, column->element_count * sizeof *copy);
    const void *data;
    for (uint32_t i = 0; i < column->element_count; i++)
        if (!supply_view_is_inline(&copy[i]) &&
            !supply_view_find(&copy[i], column->windows, column->window_count, &data))
            return false;
    return true;
}

/*
 * Lets each buffer begin with the first value in its window and end with the last one. Consumers that write an array to
 * a file or to another process write whole buffers, and a window has up to 2 GiB.
 */
static void trim_windows(const supply_column_t *column, supply_view_t *views, const void **buffers, int64_t *lengths) {
    for (uint32_t i = 0; i < column->window_count; i++) {
        buffers[i] = (const uint8_t *)column->windows[i].address + column->windows[i].bytes;
        lengths[i] = 0;
    }
    for (uint32_t i = 0; i < column->element_count; i++) {
        if (supply_view_is_inline(&views[i])) continue;
        const uint8_t *start = start_of(column, &views[i]);
        if (start < (const uint8_t *)buffers[views[i].window]) buffers[views[i].window] = start;
    }
    for (uint32_t i = 0; i < column->element_count; i++) {
        supply_view_t *view = &views[i];
        if (supply_view_is_inline(view)) continue;
        view->offset = (int32_t)(start_of(column, view) - (const uint8_t *)buffers[view->window]);
        const int64_t end = (int64_t)view->offset + view->bytes;
        if (end > lengths[view->window]) lengths[view->window] = end;
    }
}

bool supply_arrow_views(const supply_column_t *column, void *memory, struct ArrowArray *array) {
    supply_view_t *views = memory;
    int64_t *lengths = (int64_t *)(views + column->element_count);
    const void **buffers = (const void **)(lengths + column->window_count);
    if (!copy_views(column, views)) return false;
    buffers[0] = column->validity;
    buffers[1] = views;
    trim_windows(column, views, buffers + 2, lengths);
    buffers[2 + column->window_count] = lengths;
    array->buffers = buffers;
    array->n_buffers = (int64_t)column->window_count + BUFFERS_BESIDE_WINDOWS;
    return true;
}

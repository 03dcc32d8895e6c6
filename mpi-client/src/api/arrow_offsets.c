/**
 * Converts what programs give to results in Arrow's other layouts. Offsets and views are checked first: they are a
 * program's. It runs in the thread that uses the result.
 */
#include "api/arrow_offsets.h"

#include <stdlib.h>
#include <string.h>

#define TOO_LARGE "has more than 2 GiB in one batch: write smaller batches"
#define BROKEN "is no valid Arrow array: a value lies outside its buffers"

/* Validity, views, and the sizes of the other buffers. */
#define VIEW_BUFFERS 3

static const char *fail_without_memory(struct arrow_offsets *converted) {
    converted->is_without_memory = true;
    return "cannot be converted: out of memory";
}

static bool is_view(const char *format) { return format[0] == 'v'; }
static bool is_large_list(const char *format) { return strcmp(format, "+L") == 0; }

bool supply__arrow_is_other(const char *format) {
    return is_large_list(format) || strcmp(format, "U") == 0 || strcmp(format, "Z") == 0 || strcmp(format, "vu") == 0 ||
           strcmp(format, "vz") == 0;
}

const char *supply__arrow_format(const char *format) {
    if (!supply__arrow_is_other(format)) return format;
    if (is_large_list(format)) return "+l";
    return format[strlen(format) - 1] == 'u' || format[0] == 'U' ? "u" : "z";
}

/* Offsets of 64 bits as if the first one was 0. *base: the first one. */
static const char *convert_offsets(const int64_t *offsets, uint64_t count, int32_t *to, int64_t *base) {
    bool decreasing = offsets[0] < 0;
    for (uint64_t i = 0; i < count; i++) decreasing |= offsets[i + 1] < offsets[i];
    if (decreasing) return BROKEN;
    if (offsets[count] - offsets[0] > INT32_MAX) return TOO_LARGE;
    for (uint64_t i = 0; i <= count; i++) to[i] = (int32_t)(offsets[i] - offsets[0]);
    *base = offsets[0];
    return NULL;
}

/* The bytes of a view; NULL: outside of its buffer. */
static const uint8_t *view_bytes_of(const struct ArrowArray *array, const supply_view_t *view) {
    if (view->bytes <= VIEW_INLINE_MAX) return view->start;
    const int64_t count = array->n_buffers - VIEW_BUFFERS;
    if (view->window < 0 || view->window >= count || view->offset < 0) return NULL;
    const int64_t *sizes = array->buffers[array->n_buffers - 1];
    if (sizes == NULL || array->buffers[2 + view->window] == NULL ||
        view->offset + (int64_t)view->bytes > sizes[view->window])
        return NULL;
    return (const uint8_t *)array->buffers[2 + view->window] + view->offset;
}

static bool is_valid(const struct ArrowArray *array, uint64_t row) {
    const uint8_t *validity = array->buffers[0];
    return validity == NULL || (validity[row / 8] >> row % 8 & 1) != 0;
}

/* `count` views from `first` on. The view of a null need not be valid. */
static const char *offsets_copy_views(const struct ArrowArray *array, uint64_t first, uint64_t count, int32_t *to,
                                      struct arrow_offsets *converted) {
    const supply_view_t *views = (const supply_view_t *)array->buffers[1] + first;
    uint64_t end = 0;
    to[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (is_valid(array, first + i)) {
            if (views[i].bytes < 0 || view_bytes_of(array, &views[i]) == NULL) return BROKEN;
            end += (uint64_t)views[i].bytes;
        }
        if (end > INT32_MAX) return TOO_LARGE;
        to[i + 1] = (int32_t)end;
    }
    converted->data = malloc(end > 0 ? end : 1);
    if (converted->data == NULL) return fail_without_memory(converted);
    for (uint64_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)(to[i + 1] - to[i]);
        if (bytes > 0) memcpy(converted->data + to[i], view_bytes_of(array, &views[i]), bytes);
    }
    return NULL;
}

const char *supply__arrow_offsets_convert(const char *format, const struct ArrowArray *array, struct row_range range,
                                          struct arrow_offsets *converted, struct column_rows *rows, int64_t *base) {
    const uint64_t first = rows->first + range.from, count = range.end - range.from;
    converted->offsets = malloc((first + count + 1) * sizeof *converted->offsets);
    if (converted->offsets == NULL) return fail_without_memory(converted);
    rows->offsets = converted->offsets;
    int32_t *to = converted->offsets + first;
    const char *problem = is_view(format)
                              ? offsets_copy_views(array, first, count, to, converted)
                              : convert_offsets((const int64_t *)array->buffers[1] + first, count, to, base);
    if (problem != NULL || is_large_list(format)) return problem;
    rows->data = is_view(format)             ? converted->data
                 : array->buffers[2] == NULL ? NULL
                                             : (const uint8_t *)array->buffers[2] + *base;
    return NULL;
}

void supply__arrow_offsets_free(struct arrow_offsets *converted) {
    free(converted->offsets);
    free(converted->data);
    *converted = (struct arrow_offsets){0};
}

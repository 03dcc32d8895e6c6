#include "arrow_texts.h"

#include <stdlib.h>
#include <string.h>

#define TOO_LARGE "has more than 2 GiB in one batch: write smaller batches"
#define BROKEN "is no valid Arrow array: a value lies outside its buffers"

/* Validity, views, and the sizes of the other buffers. */
#define VIEW_BUFFERS 3

static const char *fail_without_memory(struct arrow_text *text) {
    text->is_without_memory = true;
    return "cannot be converted: out of memory";
}

static bool is_view(const char *format) { return format[0] == 'v'; }

bool supply_arrow_text_is_other(const char *format) {
    return strcmp(format, "U") == 0 || strcmp(format, "Z") == 0 || strcmp(format, "vu") == 0 ||
           strcmp(format, "vz") == 0;
}

const char *supply_arrow_text_format(const char *format) {
    if (!supply_arrow_text_is_other(format)) return format;
    return format[strlen(format) - 1] == 'u' || format[0] == 'U' ? "u" : "z";
}

/* The data stays where it is: its offsets begin at 0 with the first row. */
static const char *convert_offsets(const struct ArrowArray *array, uint64_t count, int32_t *to,
                                   struct column_rows *rows) {
    const int64_t *offsets = (const int64_t *)array->buffers[1] + rows->first;
    bool decreasing = offsets[0] < 0;
    for (uint64_t i = 0; i < count; i++) decreasing |= offsets[i + 1] < offsets[i];
    if (decreasing) return BROKEN;
    if (offsets[count] - offsets[0] > INT32_MAX) return TOO_LARGE;
    for (uint64_t i = 0; i <= count; i++) to[i] = (int32_t)(offsets[i] - offsets[0]);
    rows->data = array->buffers[2] == NULL ? NULL : (const uint8_t *)array->buffers[2] + offsets[0];
    return NULL;
}

/* The bytes of a view; NULL: outside of its buffer. */
static const uint8_t *bytes_of(const struct ArrowArray *array, const supply_view_t *view) {
    if (view->bytes <= VIEW_INLINE_MAX) return view->start;
    const int64_t count = array->n_buffers - VIEW_BUFFERS;
    if (view->window < 0 || view->window >= count || view->offset < 0) return NULL;
    const int64_t *sizes = array->buffers[array->n_buffers - 1];
    if (view->offset + (int64_t)view->bytes > sizes[view->window]) return NULL;
    return (const uint8_t *)array->buffers[2 + view->window] + view->offset;
}

static bool is_valid(const struct ArrowArray *array, uint64_t row) {
    const uint8_t *validity = array->buffers[0];
    return validity == NULL || (validity[row / 8] >> row % 8 & 1) != 0;
}

/* The view of a null need not be valid. */
static const char *copy_views(const struct ArrowArray *array, uint64_t count, int32_t *to, struct arrow_text *text,
                              struct column_rows *rows) {
    const supply_view_t *views = (const supply_view_t *)array->buffers[1] + rows->first;
    uint64_t end = 0;
    to[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (is_valid(array, rows->first + i)) {
            if (views[i].bytes < 0 || bytes_of(array, &views[i]) == NULL) return BROKEN;
            end += (uint64_t)views[i].bytes;
        }
        if (end > INT32_MAX) return TOO_LARGE;
        to[i + 1] = (int32_t)end;
    }
    text->data = malloc(end > 0 ? end : 1);
    if (text->data == NULL) return fail_without_memory(text);
    for (uint64_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)(to[i + 1] - to[i]);
        if (bytes > 0) memcpy(text->data + to[i], bytes_of(array, &views[i]), bytes);
    }
    rows->data = text->data;
    return NULL;
}

const char *supply_arrow_text_convert(const char *format, const struct ArrowArray *array, uint64_t count,
                                      struct arrow_text *text, struct column_rows *rows) {
    text->offsets = malloc((rows->first + count + 1) * sizeof *text->offsets);
    if (text->offsets == NULL) return fail_without_memory(text);
    rows->offsets = text->offsets;
    int32_t *to = text->offsets + rows->first;
    return is_view(format) ? copy_views(array, count, to, text, rows) : convert_offsets(array, count, to, rows);
}

void supply_arrow_text_free(struct arrow_text *text) {
    free(text->offsets);
    free(text->data);
    *text = (struct arrow_text){0};
}

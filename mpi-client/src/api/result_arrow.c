/**
 * supply_result_open_arrow() and supply_result_write_arrow(). Texts with 64-bit offsets or as views become columns with
 * 32-bit offsets. The program's arrays are checked as its columns are. They run in the thread that uses the result.
 */
#include <stdlib.h>
#include <string.h>

#include "api/result.h"
#include "block/block_writer.h"
#include "supply_arrow.h"

/** What a conversion allocates. Free it with arrow_text_free(). */
struct arrow_text {
    int32_t *offsets;
    uint8_t *data;
    bool is_without_memory; /**< why it fails */
};

#define TOO_LARGE "has more than 2 GiB in one batch: write smaller batches"
#define BROKEN "is no valid Arrow array: a value lies outside its buffers"

/* Validity, views, and the sizes of the other buffers. */
#define VIEW_BUFFERS 3

static const char *fail_without_memory(struct arrow_text *text) {
    text->is_without_memory = true;
    return "cannot be converted: out of memory";
}

static bool is_view(const char *format) { return format[0] == 'v'; }

/* "U", "Z", "vu" or "vz". */
static bool arrow_text_is_other(const char *format) {
    return strcmp(format, "U") == 0 || strcmp(format, "Z") == 0 || strcmp(format, "vu") == 0 ||
           strcmp(format, "vz") == 0;
}

/* "u" or "z" for each of these; every other format as it is. */
static const char *arrow_text_format(const char *format) {
    if (!arrow_text_is_other(format)) return format;
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

/*
 * Converts `count` rows of an array of such a format, from rows->first on. Fills in the offsets and the data of *rows.
 * NULL, or why it fails. Free *text in any case.
 */
static const char *arrow_text_convert(const char *format, const struct ArrowArray *array, uint64_t count,
                                      struct arrow_text *text, struct column_rows *rows) {
    text->offsets = malloc((rows->first + count + 1) * sizeof *text->offsets);
    if (text->offsets == NULL) return fail_without_memory(text);
    rows->offsets = text->offsets;
    int32_t *to = text->offsets + rows->first;
    return is_view(format) ? copy_views(array, count, to, text, rows) : convert_offsets(array, count, to, rows);
}

static void arrow_text_free(struct arrow_text *text) {
    free(text->offsets);
    free(text->data);
    *text = (struct arrow_text){0};
}

#define TIMESTAMP "tsu:"

/** The columns of a batch, in the order of the result, as rows to append. */
struct batch {
    struct column_rows *rows;
    struct arrow_text *texts; /**< of the columns that are converted */
};

static supply_status_t refuse_schema(supply_result_t *result, const struct ArrowSchema *schema) {
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "%s is no record batch but has the type '%s'",
                               schema != NULL ? "the schema" : "NULL", schema != NULL ? schema->format : "");
}

static bool is_batch(const struct ArrowSchema *schema) { return schema != NULL && strcmp(schema->format, "+s") == 0; }

static const char *child_format(const struct ArrowSchema *schema) {
    return schema->n_children == 1 ? schema->children[0]->format : "";
}

static supply_status_t set_field(supply_result_t *result, struct schema *schema, uint32_t index,
                                 const struct ArrowSchema *from) {
    if (from->dictionary != NULL)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "column '%s' is encoded with a dictionary: cast it to the type of its values",
                                   from->name);
    const supply_field_t field = {
        .name = from->name,
        .nullable = (from->flags & ARROW_FLAG_NULLABLE) != 0,
        .format = arrow_text_format(from->format),
        .child_format = child_format(from),
    };
    return supply__result_set_field(result, schema, index, &field);
}

supply_status_t supply_result_open_arrow(supply_result_t **result, supply_t *supply, const char *name,
                                         const struct ArrowSchema *from) {
    struct schema schema;
    supply_status_t status = supply__result_begin(result, name, is_batch(from) ? from->n_children : 1, &schema);
    if (status == SUPPLY_OK && !is_batch(from)) status = refuse_schema(*result, from);
    for (uint32_t i = 0; status == SUPPLY_OK && i < schema.count; i++)
        status = set_field(*result, &schema, i, from->children[i]);
    if (status == SUPPLY_OK) status = supply__result_open_schema(*result, supply, name, &schema);
    supply__schema_free(&schema);
    return status;
}

/* The child of that name; -1 and a failure. */
static int64_t find(supply_result_t *result, const struct ArrowSchema *schema, const char *name) {
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->name != NULL && strcmp(schema->children[i]->name, name) == 0) return i;
    supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' is missing in these rows", name);
    return -1;
}

/* Zones only say how to show an instant. */
static bool same_type(const struct schema_entry *entry, const struct ArrowSchema *schema) {
    const char *format = arrow_text_format(schema->format);
    const size_t length = strlen(TIMESTAMP);
    if (strncmp(format, TIMESTAMP, length) == 0 && strncmp(entry->format, TIMESTAMP, length) == 0)
        return (format[length] == '\0') == (entry->format[length] == '\0');
    return schema->dictionary == NULL && strcmp(format, entry->format) == 0 &&
           strcmp(child_format(schema), entry->child_format) == 0;
}

static supply_status_t fail_by_null_number(supply_result_t *result, const char *name) {
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                               "column '%s' has a list with a null in it: fill it, or make the whole list null", name);
}

/* The numbers of lists: their data as if the first list was at its beginning. SUPPLY_OK, or _ARGUMENT. */
static supply_status_t set_list(supply_result_t *result, const struct schema_entry *entry,
                                const struct ArrowArray *array, uint64_t count, struct column_rows *rows) {
    const struct ArrowArray *numbers = array->children[0];
    const struct format format = supply__schema_format(entry);
    const uint64_t first = rows->first * format.list_size + (uint64_t)numbers->offset;
    if (numbers->n_buffers != 2 || (uint64_t)numbers->length < (rows->first + count) * format.list_size)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' is no valid Arrow array", entry->name);
    if (numbers->null_count != 0 && numbers->buffers[0] != NULL)
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t row = rows->first + i;
            const bool is_null = rows->validity != NULL && (rows->validity[row / 8] >> row % 8 & 1) == 0;
            if (!is_null &&
                supply__bits_count_zeros(numbers->buffers[0], first + i * format.list_size, format.list_size) > 0)
                return fail_by_null_number(result, entry->name);
        }
    const size_t number_bytes = format.bytes / format.list_size;
    rows->data = numbers->buffers[1] == NULL
                     ? NULL
                     : (const uint8_t *)numbers->buffers[1] + (size_t)numbers->offset * number_bytes;
    return SUPPLY_OK;
}

static supply_status_t set_buffers(supply_result_t *result, const struct schema_entry *entry, const char *type,
                                   const struct ArrowArray *array, uint64_t count, struct arrow_text *text,
                                   struct column_rows *rows) {
    if (array->null_count != 0) rows->validity = array->buffers[0];
    if (supply__schema_format(entry).list_size > 0) return set_list(result, entry, array, count, rows);
    if (arrow_text_is_other(type)) {
        const char *problem = arrow_text_convert(type, array, count, text, rows);
        return problem == NULL
                   ? SUPPLY_OK
                   : supply__result_fail(result, text->is_without_memory ? SUPPLY_ERROR_MEMORY : SUPPLY_ERROR_ARGUMENT,
                                         "column '%s' %s", entry->name, problem);
    }
    const bool has_offsets = array->n_buffers == 3;
    if (has_offsets) rows->offsets = array->buffers[1];
    rows->data = array->buffers[has_offsets ? 2 : 1];
    return SUPPLY_OK;
}

static int64_t buffers_of(const struct schema_entry *entry) {
    const struct format format = supply__schema_format(entry);
    return format.list_size > 0 ? 1 : format.layout == FORMAT_VARIABLE ? 3 : 2;
}

static supply_status_t set_column(supply_result_t *result, uint32_t index, const struct ArrowSchema *schema,
                                  const struct ArrowArray *array, struct batch *batch) {
    const struct schema_entry *entry = &result->schema.entries[index];
    const int64_t child = find(result, schema, entry->name);
    if (child < 0) return SUPPLY_ERROR_ARGUMENT;
    const struct ArrowSchema *type = schema->children[child];
    const struct ArrowArray *values = array->children[child];
    if (!same_type(entry, type))
        return supply__result_fail(
            result, SUPPLY_ERROR_ARGUMENT, "column '%s' has the type '%s'%s%s, and these rows have '%s'%s%s: cast it",
            entry->name, entry->format, entry->child_format[0] ? " of " : "", entry->child_format, type->format,
            child_format(type)[0] ? " of " : "", child_format(type));
    if (values->n_buffers < buffers_of(entry) || values->length < array->offset + array->length)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' is no valid Arrow array", entry->name);
    const uint64_t count = (uint64_t)array->length;
    struct column_rows *rows = &batch->rows[index];
    *rows = (struct column_rows){.first = (uint64_t)(array->offset + values->offset)};
    if (count == 0) return SUPPLY_OK;
    const supply_status_t status = set_buffers(result, entry, type->format, values, count, &batch->texts[index], rows);
    return status == SUPPLY_OK ? supply__result_check_rows(result, index, rows, count, BYTES_UNKNOWN) : status;
}

static supply_status_t check_batch(supply_result_t *result, const struct ArrowSchema *schema,
                                   const struct ArrowArray *array) {
    if (!is_batch(schema) || array == NULL) return refuse_schema(result, array != NULL ? schema : NULL);
    if (array->n_children != schema->n_children || array->n_buffers < 1)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "the array does not belong to the schema");
    if (array->null_count != 0 && array->buffers[0] != NULL &&
        supply__bits_count_zeros(array->buffers[0], (uint64_t)array->offset, (uint64_t)array->length) > 0)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "a row of these is null as a whole");
    if ((uint64_t)schema->n_children != result->schema.count)
        for (int64_t i = 0; i < schema->n_children; i++)
            if (schema->children[i]->name == NULL ||
                supply__schema_index(&result->schema, schema->children[i]->name) < 0)
                return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                           "it has no column '%s', which these rows have: leave it out",
                                           schema->children[i]->name ? schema->children[i]->name : "");
    return SUPPLY_OK;
}

static supply_status_t write_batch(supply_result_t *result, const struct ArrowSchema *schema,
                                   const struct ArrowArray *array, struct batch *batch) {
    supply_status_t status = SUPPLY_OK;
    for (uint32_t i = 0; status == SUPPLY_OK && i < result->schema.count; i++)
        status = set_column(result, i, schema, array, batch);
    if (status == SUPPLY_OK) status = supply__result_append(result, batch->rows, (uint64_t)array->length);
    for (uint32_t i = 0; i < result->schema.count; i++) arrow_text_free(&batch->texts[i]);
    return status;
}

supply_status_t supply_result_write_arrow(supply_result_t *result, const struct ArrowSchema *schema,
                                          const struct ArrowArray *array) {
    supply_status_t status = supply__result_check_open(result);
    if (status == SUPPLY_OK) status = check_batch(result, schema, array);
    if (status != SUPPLY_OK) return status;
    const uint32_t count = result->schema.count;
    struct batch batch = {calloc(count, sizeof *batch.rows), calloc(count, sizeof *batch.texts)};
    status = batch.rows != NULL && batch.texts != NULL
                 ? write_batch(result, schema, array, &batch)
                 : supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    free(batch.rows);
    free(batch.texts);
    return status;
}

/**
 * supply_result_open_arrow() and supply_result_write_arrow(). Texts with 64-bit offsets or as views become columns with
 * 32-bit offsets. The program's arrays are checked as its columns are. They run in the thread that uses the result.
 */
#include <stdlib.h>
#include <string.h>

#include "api/result.h"
#include "block/block_writer.h"
#include "supply_arrow.h"

/*
 * Converts what programs give to results in Arrow's other layouts. Offsets and views are checked first: they are a
 * program's. It runs in the thread that uses the result.
 */

/* What a conversion allocates. Free it with arrow_offsets_free(). */
struct arrow_offsets {
    int32_t *offsets;
    uint8_t *data;          /**< of views */
    bool is_without_memory; /**< why it fails */
};

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

static bool arrow_is_other(const char *format) {
    return is_large_list(format) || strcmp(format, "U") == 0 || strcmp(format, "Z") == 0 || strcmp(format, "vu") == 0 ||
           strcmp(format, "vz") == 0;
}

/* "u", "z" or "+l" for each of these; every other format as it is. */
static const char *arrow_format(const char *format) {
    if (!arrow_is_other(format)) return format;
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

/*
 * Converts these rows of an array of such a format. Fills in the offsets of *rows, and the data of texts and bytes.
 * *base: where the data, or the child, begins in that of the array. NULL, or why it fails. Free *converted in any case.
 */
static const char *arrow_offsets_convert(const char *format, const struct ArrowArray *array, struct row_range range,
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

static void arrow_offsets_free(struct arrow_offsets *converted) {
    free(converted->offsets);
    free(converted->data);
    *converted = (struct arrow_offsets){0};
}

#define TIMESTAMP "tsu:"

/** The columns of a batch and their children, in the order of the result, as rows to append. */
struct batch {
    struct column_rows *rows;
    struct arrow_offsets *texts; /**< of those that are converted */
};

static supply_status_t refuse_schema(supply_result_t *result, const struct ArrowSchema *schema) {
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "%s is no record batch but has the type '%s'",
                               schema != NULL ? "the schema" : "NULL",
                               schema != NULL && schema->format != NULL ? schema->format : "");
}

/* Whether a schema has what every schema must have, with those within it, as deep as they are read. */
// NOLINTNEXTLINE(misc-no-recursion): `depth` ends it
static bool is_schema(const struct ArrowSchema *schema, int depth) {
    if (schema == NULL || schema->format == NULL || schema->n_children < 0) return false;
    if (schema->n_children > 0 && schema->children == NULL) return false;
    for (int64_t i = 0; i < schema->n_children && depth <= NESTING_MAX; i++)
        if (!is_schema(schema->children[i], depth + 1)) return false;
    return true;
}

static bool is_batch(const struct ArrowSchema *schema) {
    return is_schema(schema, 0) && strcmp(schema->format, "+s") == 0;
}

static bool is_fixed_list(const struct ArrowSchema *schema) { return strncmp(schema->format, "+w:", 3) == 0; }

/* The format of the numbers of a list; "": the schema is that of no list of numbers. */
static const char *number_format(const struct ArrowSchema *schema) {
    const bool may_have = is_fixed_list(schema) && schema->n_children == 1 && schema->children[0]->dictionary == NULL;
    const char *format = may_have ? schema->children[0]->format : "";
    return format[0] != '\0' && format[1] == '\0' && strchr("cCsSiIlLefg", format[0]) != NULL ? format : "";
}

/* Only numbers that may be null are a child: the others are the data of the list. */
static bool has_children(const struct ArrowSchema *schema) {
    const bool is_compact = number_format(schema)[0] != '\0' && (schema->children[0]->flags & ARROW_FLAG_NULLABLE) == 0;
    return schema->n_children > 0 && !is_compact;
}

/* The type's children, for messages. */
static const char *child_format(const struct ArrowSchema *schema) {
    if (schema->n_children != 1) return "";
    return schema->children[0]->dictionary != NULL ? "a dictionary" : schema->children[0]->format;
}

/* How many entries the children of a schema are, with their own. Those that lie too deep are refused later. */
// NOLINTNEXTLINE(misc-no-recursion): `depth` ends it
static int64_t count_entries(const struct ArrowSchema *schema, int depth) {
    int64_t count = schema->n_children;
    for (int64_t i = 0; i < schema->n_children && count <= SCHEMA_ENTRIES_MAX && depth <= NESTING_MAX; i++)
        if (has_children(schema->children[i])) count += count_entries(schema->children[i], depth + 1);
    return count;
}

/* Sets the children of a schema as the entries from *next on. */
// NOLINTNEXTLINE(misc-no-recursion): `depth` ends it
static supply_status_t set_fields(supply_result_t *result, struct schema *schema, const struct ArrowSchema *of,
                                  int depth, uint32_t *next) {
    for (int64_t i = 0; i < of->n_children; i++) {
        const struct ArrowSchema *from = of->children[i];
        if (from->dictionary != NULL)
            return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                       "column '%s' is encoded with a dictionary: cast it to the type of its values",
                                       from->name != NULL ? from->name : "");
        const supply_field_t field = {
            .name = from->name,
            .nullable = (from->flags & ARROW_FLAG_NULLABLE) != 0,
            .format = arrow_format(from->format),
            .child_format = number_format(from),
            .child_count = has_children(from) ? (int)from->n_children : 0,
        };
        TRY(supply__result_set_field(result, schema, (*next)++, &field));
        if (has_children(from) && depth <= NESTING_MAX) TRY(set_fields(result, schema, from, depth + 1, next));
    }
    return SUPPLY_OK;
}

supply_status_t supply_result_open_arrow(supply_result_t **result, supply_t *supply, const char *name,
                                         const struct ArrowSchema *from) {
    struct schema schema;
    uint32_t next = 0;
    supply_status_t status = supply__result_begin(result, name, is_batch(from) ? count_entries(from, 0) : 1, &schema);
    if (status == SUPPLY_OK && !is_batch(from)) status = refuse_schema(*result, from);
    if (status == SUPPLY_OK) status = set_fields(*result, &schema, from, 0, &next);
    if (status == SUPPLY_OK) status = supply__result_check_fields(*result, &schema);
    if (status == SUPPLY_OK) status = supply__result_open_schema(*result, supply, name, &schema);
    supply__schema_free(&schema);
    return status;
}

static supply_status_t refuse_array(supply_result_t *result, uint32_t index) {
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' is no valid Arrow array",
                               supply__result_path(result, index).text);
}

/* The child of the entry's name, most often number `from`. -1 and a failure: there is none. */
static int64_t batch_find_column(supply_result_t *result, const struct ArrowSchema *schema, uint32_t index,
                                 int64_t from) {
    const char *name = supply__schema_name(&result->schema, index);
    for (int64_t i = 0; i < schema->n_children; i++) {
        const int64_t at = (from + i) % schema->n_children;
        if (schema->children[at]->name != NULL && strcmp(schema->children[at]->name, name) == 0) return at;
    }
    supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' is missing in these rows",
                        supply__result_path(result, index).text);
    return -1;
}

/*
 * Zones only say how to show an instant. Months may be numbers of 32 bits, because pyarrow has no arrays of them. What
 * the children are is checked with them.
 */
static bool same_type(const struct schema_entry *entry, const struct ArrowSchema *schema) {
    const char *format = arrow_format(schema->format);
    const size_t length = strlen(TIMESTAMP);
    if (strncmp(format, TIMESTAMP, length) == 0 && strncmp(entry->format, TIMESTAMP, length) == 0)
        return (format[length] == '\0') == (entry->format[length] == '\0');
    if (strcmp(format, "i") == 0 && strcmp(entry->format, "tiM") == 0) return true;
    if (strcmp(format, entry->format) != 0) return false;
    return entry->children > 0 ? schema->n_children == entry->children
                               : strcmp(child_format(schema), entry->child_format) == 0;
}

static supply_status_t fail_by_null_number(supply_result_t *result, uint32_t index) {
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                               "column '%s' has a list with a null in it: fill it, or make the whole list null",
                               supply__result_path(result, index).text);
}

/* No memory has more bits. Numbers of rows and of their bytes are not too large below it. */
#define ROWS_MAX (INT64_C(1) << 50)

static int64_t batch_buffers_of(const char *format) {
    if (strcmp(format, "+s") == 0 || strncmp(format, "+w:", 3) == 0) return 1;
    return format[1] == '\0' && strchr("uzUZ", format[0]) != NULL ? 3 : format[0] == 'v' ? 3 : 2;
}

/*
 * The one check of an array from outside, before anything of it is read: whether it has `rows` rows, and the buffers
 * and children of its type. Offsets and views are checked when they are read.
 */
static bool is_whole(const struct ArrowSchema *type, const struct ArrowArray *array, uint64_t rows) {
    const int64_t buffers = batch_buffers_of(type->format);
    if (array == NULL || array->length < 0 || array->offset < 0 || array->length > ROWS_MAX ||
        array->offset > ROWS_MAX || (uint64_t)array->length < rows || array->buffers == NULL ||
        array->n_buffers < buffers || array->n_children != type->n_children ||
        (array->n_children > 0 && array->children == NULL))
        return false;
    const bool has_offsets = buffers == 3 || type->format[0] == '+';
    if (rows > 0 && buffers > 1 && has_offsets && array->buffers[1] == NULL) return false;
    /* Each row of a list of one length is up to 2^30 of its child. */
    return !is_fixed_list(type) || (uint64_t)array->offset + rows <= ROWS_MAX >> 17;
}

/* The numbers of lists: their data as if the first list was at its beginning. SUPPLY_OK, or _ARGUMENT. */
static supply_status_t set_list(supply_result_t *result, uint32_t index, const struct ArrowSchema *type,
                                const struct ArrowArray *array, struct row_range range, struct column_rows *rows) {
    const struct ArrowArray *numbers = array->children[0];
    const struct format format = result->schema.formats[index];
    if (!is_whole(type->children[0], numbers, (rows->first + range.end) * format.list_size))
        return refuse_array(result, index);
    if (numbers->null_count != 0 && numbers->buffers[0] != NULL)
        for (uint64_t i = range.from; i < range.end; i++) {
            const uint64_t row = rows->first + i, first = row * format.list_size + (uint64_t)numbers->offset;
            const bool is_null = rows->validity != NULL && (rows->validity[row / 8] >> row % 8 & 1) == 0;
            if (!is_null && supply__bits_count_zeros(numbers->buffers[0], first, format.list_size) > 0)
                return fail_by_null_number(result, index);
        }
    const size_t number_bytes = format.bytes / format.list_size;
    rows->data = numbers->buffers[1] == NULL
                     ? NULL
                     : (const uint8_t *)numbers->buffers[1] + (size_t)numbers->offset * number_bytes;
    return SUPPLY_OK;
}

/* *base: where the child of a large list begins. */
static supply_status_t set_buffers(supply_result_t *result, uint32_t index, const struct ArrowSchema *type,
                                   const struct ArrowArray *array, struct row_range range, struct batch *batch,
                                   int64_t *base) {
    const struct format *format = &result->schema.formats[index];
    struct column_rows *rows = &batch->rows[index];
    struct arrow_offsets *text = &batch->texts[index];
    if (array->null_count != 0) rows->validity = array->buffers[0];
    if (format->layout == FORMAT_FIXED && format->list_size > 0)
        return set_list(result, index, type, array, range, rows);
    if (format->layout == FORMAT_STRUCT || format->layout == FORMAT_FIXED_LIST) return SUPPLY_OK;
    if (arrow_is_other(type->format)) {
        const char *problem = arrow_offsets_convert(type->format, array, range, text, rows, base);
        return problem == NULL
                   ? SUPPLY_OK
                   : supply__result_fail(result, text->is_without_memory ? SUPPLY_ERROR_MEMORY : SUPPLY_ERROR_ARGUMENT,
                                         "column '%s' %s", supply__result_path(result, index).text, problem);
    }
    const bool has_offsets = supply__has_offsets(format);
    if (has_offsets) rows->offsets = array->buffers[1];
    if (format->layout != FORMAT_LIST) rows->data = array->buffers[has_offsets ? 2 : 1];
    return SUPPLY_OK;
}

/* Whether the first and the last offset are a range of a child; the others are checked with the rows. */
static bool has_child_range(const struct column_rows *rows, struct row_range range) {
    if (range.from == range.end) return true;
    if (rows->offsets == NULL) return false;
    const int32_t from = rows->offsets[rows->first + range.from], end = rows->offsets[rows->first + range.end];
    return from >= 0 && from <= end;
}

static supply_status_t set_entry(supply_result_t *result, uint32_t index, const struct ArrowSchema *type,
                                 const struct ArrowArray *array, int64_t base, struct row_range range,
                                 struct batch *batch);

/* The children of an entry: fields by their names, others by their places. base: where a child begins. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t set_children(supply_result_t *result, uint32_t index, const struct ArrowSchema *type,
                                    const struct ArrowArray *array, struct row_range range, int64_t base,
                                    struct batch *batch) {
    const struct schema *schema = &result->schema;
    const bool is_of_map = index > 0 && strcmp(schema->entries[index - 1].format, "+m") == 0;
    const bool is_by_name = schema->formats[index].layout == FORMAT_STRUCT && !is_of_map;
    for (uint32_t i = 0, child = index + 1; i < schema->entries[index].children; child = schema->ends[child], i++) {
        const int64_t at = is_by_name ? batch_find_column(result, type, child, i) : i;
        if (at < 0) return SUPPLY_ERROR_ARGUMENT;
        TRY(set_entry(result, child, type->children[at], array->children[at], base, range, batch));
    }
    return SUPPLY_OK;
}

/* Fills in the rows of an entry, of the array from `base` on, and of its children. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t set_entry(supply_result_t *result, uint32_t index, const struct ArrowSchema *type,
                                 const struct ArrowArray *array, int64_t base, struct row_range range,
                                 struct batch *batch) {
    const struct schema_entry *entry = &result->schema.entries[index];
    const struct format *format = &result->schema.formats[index];
    struct column_rows *rows = &batch->rows[index];
    const char *untyped = type->dictionary != NULL         ? "is encoded with a dictionary"
                          : strcmp(type->format, "n") == 0 ? "has only nulls and no type"
                                                           : NULL;
    if (untyped != NULL)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "column '%s' %s in these rows: cast it to the type of the result's column ('%s')",
                                   supply__result_path(result, index).text, untyped, entry->format);
    if (!same_type(entry, type))
        return supply__result_fail(
            result, SUPPLY_ERROR_ARGUMENT, "column '%s' has the type '%s'%s%s, and these rows have '%s'%s%s: cast it",
            supply__result_path(result, index).text, entry->format, entry->child_format[0] ? " of " : "",
            entry->child_format, type->format, child_format(type)[0] ? " of " : "", child_format(type));
    if (!is_whole(type, array, (uint64_t)base + range.end)) return refuse_array(result, index);
    *rows = (struct column_rows){.first = (uint64_t)(array->offset + base),
                                 .count = (uint64_t)(array->length - base),
                                 .data_bytes = BYTES_UNKNOWN};
    base = 0;
    if (range.from < range.end) TRY(set_buffers(result, index, type, array, range, batch, &base));
    if (entry->children == 0) return SUPPLY_OK;
    if (format->layout == FORMAT_LIST && !has_child_range(rows, range)) return refuse_array(result, index);
    return set_children(result, index, type, array, supply__child_range(format, rows, range), base, batch);
}

/* column: the entry's number among the columns. */
static supply_status_t set_column(supply_result_t *result, uint32_t index, int64_t column,
                                  const struct ArrowSchema *schema, const struct ArrowArray *array,
                                  struct batch *batch) {
    const int64_t child = batch_find_column(result, schema, index, column);
    if (child < 0) return SUPPLY_ERROR_ARGUMENT;
    return set_entry(result, index, schema->children[child], array->children[child], array->offset,
                     (struct row_range){0, (uint64_t)array->length}, batch);
}

/* The first row whose bit is 0; `count`: there is none. */
static uint64_t first_null(const uint8_t *validity, uint64_t first, uint64_t count) {
    if (supply__bits_count_zeros(validity, first, count) == 0) return count;
    uint64_t row = 0;
    while (row < count && (validity[(first + row) / 8] >> (first + row) % 8 & 1) != 0) row++;
    return row;
}

static supply_status_t check_batch(supply_result_t *result, const struct ArrowSchema *schema,
                                   const struct ArrowArray *array) {
    if (!is_batch(schema) || array == NULL) return refuse_schema(result, array != NULL ? schema : NULL);
    if (!is_whole(schema, array, 0))
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "the array does not belong to the schema, or is no valid Arrow array");
    const uint64_t rows = (uint64_t)array->length;
    const uint64_t null_row = array->null_count != 0 && array->buffers[0] != NULL
                                  ? first_null(array->buffers[0], (uint64_t)array->offset, rows)
                                  : rows;
    if (null_row < rows)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "row %llu of these is null as a whole: leave it out, or write nulls in its columns",
                                   (unsigned long long)null_row);
    if ((uint64_t)schema->n_children != result->schema.column_count)
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
    int64_t column = 0;
    for (uint32_t i = 0; status == SUPPLY_OK && i < result->schema.count; i = result->schema.ends[i])
        status = set_column(result, i, column++, schema, array, batch);
    if (status == SUPPLY_OK) status = supply__result_check_rows(result, batch->rows, (uint64_t)array->length);
    if (status == SUPPLY_OK) status = supply__result_append(result, batch->rows, (uint64_t)array->length);
    for (uint32_t i = 0; i < result->schema.count; i++) arrow_offsets_free(&batch->texts[i]);
    return status;
}

supply_status_t supply_result_write_arrow(supply_result_t *result, const struct ArrowSchema *schema,
                                          const struct ArrowArray *array) {
    TRY(supply__result_check_open(result));
    TRY(check_batch(result, schema, array));
    const uint32_t count = result->schema.count;
    struct batch batch = {calloc(count, sizeof *batch.rows), calloc(count, sizeof *batch.texts)};
    supply_status_t status = batch.rows != NULL && batch.texts != NULL
                                 ? write_batch(result, schema, array, &batch)
                                 : supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    free(batch.rows);
    free(batch.texts);
    return status;
}

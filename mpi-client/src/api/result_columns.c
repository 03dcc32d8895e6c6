/**
 * supply_result_open(), supply_result_create() and supply_result_write(): columns by pointer. All that the program
 * gives is checked before a row is appended, so that a block is always valid. They run in the thread that uses the
 * result.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/result.h"
#include "base/opener.h"
#include "base/shared.h"
#include "files/options.h"
#include "files/result_names.h"

supply_status_t supply__result_begin(supply_result_t **result, const char *name, int64_t count, struct schema *schema) {
    *schema = (struct schema){0};
    if (result == NULL) return SUPPLY_ERROR_ARGUMENT;
    *result = calloc(1, sizeof **result);
    if (*result == NULL) return SUPPLY_ERROR_MEMORY;
    if (((*result)->is_mine = supply__opener_mark()) == NULL) {
        free(*result);
        *result = NULL;
        return SUPPLY_ERROR_MEMORY;
    }
    (*result)->file = RESULT_FILE_NONE;
    (*result)->process = getpid();
    if (name == NULL || !supply__result_name_is_valid(name))
        return supply__result_fail(*result, SUPPLY_ERROR_ARGUMENT,
                                   "'%s' cannot be its name: a name has 1 to %d of the characters A-Z a-z 0-9 _ -",
                                   name ? name : "", RESULT_NAME_MAX);
    if (count < 1 || count > SCHEMA_ENTRIES_MAX)
        return supply__result_fail(*result, SUPPLY_ERROR_ARGUMENT, "'%s' has %lld columns: it must have 1 to %d", name,
                                   (long long)count, SCHEMA_ENTRIES_MAX);
    schema->entries = calloc((size_t)count, sizeof *schema->entries);
    if (schema->entries == NULL) return supply__result_fail(*result, SUPPLY_ERROR_MEMORY, "out of memory");
    schema->count = (uint32_t)count;
    return SUPPLY_OK;
}

static bool copy_text(char *to, size_t to_bytes, const char *text) {
    if (strlen(text) >= to_bytes) return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

static supply_status_t refuse_type(supply_result_t *result, const char *name, const char *format,
                                   const char *child_format) {
    return supply__result_fail(
        result, SUPPLY_ERROR_ARGUMENT,
        "column '%s' has the type '%s'%s%s, which results cannot have: convert it to a boolean, a number, a text, "
        "bytes, a date, a time, a timestamp in microseconds, an interval, a decimal of 128 bits, or a list, a struct "
        "or a map of these",
        name, format, child_format[0] ? " of " : "", child_format);
}

supply_status_t supply__result_set_field(supply_result_t *result, struct schema *schema, uint32_t index,
                                         const supply_field_t *field) {
    const char *format = field->format != NULL ? field->format : "";
    const char *child_format = field->child_format != NULL && field->child_count == 0 ? field->child_format : "";
    struct failure failure;
    const supply_status_t status =
        supply__schema_set_name(schema, index, field->name != NULL ? field->name : "", &failure);
    if (status != SUPPLY_OK) return supply__result_fail(result, status, "%s", failure.text);
    /* The name may have moved the entries. */
    struct schema_entry *entry = &schema->entries[index];
    entry->flags = field->nullable ? COLUMN_NULLABLE : 0;
    entry->children = field->child_count > 0 ? (uint32_t)field->child_count : 0;
    const bool known = copy_text(entry->format, sizeof entry->format, format) &&
                       copy_text(entry->child_format, sizeof entry->child_format, child_format) &&
                       (child_format[0] == '\0' || supply__schema_format(entry).list_size > 0);
    return known ? SUPPLY_OK : refuse_type(result, supply__schema_name(schema, index), format, child_format);
}

static supply_status_t check_type(supply_result_t *result, const struct schema *schema, uint32_t index) {
    const struct schema_entry *entry = &schema->entries[index];
    const unsigned layout = schema->formats[index].layout, alone = supply__schema_format(entry).layout;
    if (layout != FORMAT_UNKNOWN && layout != FORMAT_VIEWS) return SUPPLY_OK;
    const struct schema_path path = supply__schema_path(schema, index);
    if (alone == FORMAT_UNKNOWN || alone == FORMAT_VIEWS)
        return refuse_type(result, path.text, entry->format, entry->child_format);
    return supply__result_fail(
        result, SUPPLY_ERROR_ARGUMENT,
        "column '%s' has the type '%s' and %u children: a list has 1, a map 1, which is a struct "
        "of its keys and its values, a struct 1 or more, any other type none",
        path.text, entry->format, entry->children);
}

struct named {
    const char *name;
    uint32_t entry;
};

static int compare_names(const void *one, const void *other) {
    return strcmp(((const struct named *)one)->name, ((const struct named *)other)->name);
}

/* The entries `first` to `end - 1`: columns, or the children of a struct, each with its own children. */
static supply_status_t columns_check_names(supply_result_t *result, const struct schema *schema, uint32_t first,
                                           uint32_t end) {
    if (first == end) return SUPPLY_OK;
    struct named *names = malloc((end - first) * sizeof *names);
    if (names == NULL) return supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    size_t count = 0;
    for (uint32_t i = first; i < end; i = schema->ends[i])
        names[count++] = (struct named){supply__schema_name(schema, i), i};
    qsort(names, count, sizeof *names, compare_names);
    supply_status_t status = SUPPLY_OK;
    for (size_t i = 1; i < count && status == SUPPLY_OK; i++)
        if (strcmp(names[i - 1].name, names[i].name) == 0)
            status = supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "there are two columns '%s': rename one",
                                         supply__schema_path(schema, names[i].entry).text);
    free(names);
    return status;
}

static void columns_set_name(struct schema_entry *entry, const char *name) {
    if (entry->name[0] == '\0' && entry->name_bytes == 0) copy_text(entry->name, sizeof entry->name, name);
}

/* Children of a list need no names. Nor is an entry of a map ever null, or a key. */
static void complete_list(struct schema_entry *list) {
    const bool is_map = strcmp(list->format, "+m") == 0;
    columns_set_name(&list[1], is_map ? "entries" : "item");
    if (!is_map) return;
    columns_set_name(&list[2], "key");
    if (list[2].children == 0) columns_set_name(&list[3], "value");
    list[1].flags = list[2].flags = 0;
}

supply_status_t supply__result_check_fields(supply_result_t *result, struct schema *schema) {
    struct failure failure;
    const supply_status_t status = supply__schema_index_entries(schema, &failure);
    if (status != SUPPLY_OK)
        return supply__result_fail(result, status == SUPPLY_ERROR_MEMORY ? status : SUPPLY_ERROR_ARGUMENT, "%s",
                                   failure.text);
    for (uint32_t i = 0; i < schema->count; i++) {
        TRY(check_type(result, schema, i));
        if (schema->entries[i].children == 1 && schema->formats[i].layout != FORMAT_STRUCT)
            complete_list(&schema->entries[i]);
    }
    TRY(columns_check_names(result, schema, 0, schema->count));
    for (uint32_t i = 0; i < schema->count; i++)
        if (schema->formats[i].layout == FORMAT_STRUCT)
            TRY(columns_check_names(result, schema, i + 1, schema->ends[i]));
    return SUPPLY_OK;
}

/* Begins a result, with a schema of these fields. Free *schema in any case. */
static supply_status_t begin_with_fields(supply_result_t **result, const char *name, const supply_field_t *fields,
                                         int count, struct schema *schema) {
    TRY(supply__result_begin(result, name, fields != NULL ? count : 0, schema));
    for (uint32_t i = 0; i < schema->count; i++) TRY(supply__result_set_field(*result, schema, i, &fields[i]));
    return supply__result_check_fields(*result, schema);
}

supply_status_t supply_result_open(supply_result_t **result, supply_t *supply, const char *name,
                                   const supply_field_t *fields, int count) {
    struct schema schema;
    supply_status_t status = begin_with_fields(result, name, fields, count, &schema);
    if (status == SUPPLY_OK) status = supply__result_open_schema(*result, supply, name, &schema);
    supply__schema_free(&schema);
    return status;
}

supply_status_t supply_result_create(supply_result_t **result, const supply_options_t *options, const char *name,
                                     const supply_field_t *fields, int count) {
    struct schema schema;
    supply_status_t status = begin_with_fields(result, name, fields, count, &schema);
    if (status == SUPPLY_OK) status = supply__result_create_schema(*result, options, name, &schema);
    supply__schema_free(&schema);
    return status;
}

static bool is_null(const struct column_rows *rows, uint64_t row) {
    const uint64_t bit = rows->first + row;
    return rows->validity != NULL && (rows->validity[bit / 8] >> bit % 8 & 1) == 0;
}

static supply_status_t columns_check_offsets(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                             struct row_range range) {
    if (rows->offsets == NULL)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "column '%s' has no offsets, which its type '%s' needs",
                                   supply__result_path(result, index).text, result->schema.entries[index].format);
    const bool is_list = result->schema.formats[index].layout == FORMAT_LIST;
    const uint64_t most = is_list ? rows[1].count : rows->data_bytes;
    const int32_t *offsets = &rows->offsets[rows->first];
    uint32_t last;
    if (!supply__offsets_copy(&offsets[range.from], range.end - range.from, NULL, &last) || last > most)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "column '%s': its offsets must begin at 0 or above, never decrease, and end within "
                                   "its %s",
                                   supply__result_path(result, index).text, is_list ? "child" : "data");
    return SUPPLY_OK;
}

static uint64_t bytes_needed(const struct format *format, const struct column_rows *rows, struct row_range range) {
    const uint64_t end = rows->first + range.end;
    switch (format->layout) {
        case FORMAT_BITS:
            return supply__bitmap_bytes(end);
        case FORMAT_VARIABLE:
            return rows->offsets != NULL ? (uint64_t)rows->offsets[end] : 0;
        default:
            return end * format->bytes;
    }
}

/* That the buffers have these rows, and those of the children that belong to them. rows: of this entry. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t check_buffers(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                     struct row_range range) {
    const struct schema *schema = &result->schema;
    const struct format *format = &schema->formats[index];
    if (range.from == range.end) return SUPPLY_OK;
    if (range.end > rows->count)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' has %llu rows and needs %llu",
                                   supply__result_path(result, index).text, (unsigned long long)rows->count,
                                   (unsigned long long)range.end);
    if (supply__has_offsets(format)) TRY(columns_check_offsets(result, index, rows, range));
    const uint64_t needed = bytes_needed(format, rows, range);
    if (needed > rows->data_bytes || (needed > 0 && rows->data == NULL))
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' has %llu bytes of data and needs %llu",
                                   supply__result_path(result, index).text,
                                   (unsigned long long)(rows->data != NULL ? rows->data_bytes : 0),
                                   (unsigned long long)needed);
    const struct row_range below = supply__child_range(format, rows, range);
    for (uint32_t child = index + 1; child < schema->ends[index]; child = schema->ends[child])
        TRY(check_buffers(result, child, rows + (child - index), below));
    return SUPPLY_OK;
}

static supply_status_t check_nulls(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                   struct row_range range);

/* What the children have for a null means nothing: so each run of other rows is checked. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t check_nulls_below(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                         struct row_range range) {
    const struct schema *schema = &result->schema;
    for (uint64_t from = range.from; from < range.end;) {
        uint64_t end = rows->validity == NULL ? range.end : from;
        while (end < range.end && !is_null(rows, end)) end++;
        const struct row_range below =
            supply__child_range(&schema->formats[index], rows, (struct row_range){from, end});
        for (uint32_t child = index + 1; child < schema->ends[index]; child = schema->ends[child])
            TRY(check_nulls(result, child, rows + (child - index), below));
        for (from = end; from < range.end && is_null(rows, from);) from++;
    }
    return SUPPLY_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t check_nulls(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                   struct row_range range) {
    const struct schema_entry *entry = &result->schema.entries[index];
    for (uint64_t i = range.from; i < range.end && rows->validity != NULL && (entry->flags & COLUMN_NULLABLE) == 0; i++)
        if (is_null(rows, i))
            return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                       "column '%s' is not nullable, and its value in row %llu of these is null: make "
                                       "it nullable in the schema, or fill it",
                                       supply__result_path(result, index).text, (unsigned long long)i);
    return entry->children > 0 ? check_nulls_below(result, index, rows, range) : SUPPLY_OK;
}

supply_status_t supply__result_check_rows(supply_result_t *result, const struct column_rows *rows, uint64_t count) {
    const struct schema *schema = &result->schema;
    const struct row_range all = {0, count};
    for (uint32_t i = 0; i < schema->count; i = schema->ends[i]) {
        TRY(check_buffers(result, i, &rows[i], all));
        TRY(check_nulls(result, i, &rows[i], all));
    }
    return SUPPLY_OK;
}

static supply_status_t check_written_type(supply_result_t *result, uint32_t index, const supply_column_t *column) {
    const struct schema_entry *entry = &result->schema.entries[index];
    if ((column->format == NULL || strcmp(column->format, entry->format) == 0) &&
        (column->format == NULL || column->child_format == NULL || entry->children > 0 ||
         strcmp(column->child_format, entry->child_format) == 0))
        return SUPPLY_OK;
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' has the type '%s', and these rows have '%s'",
                               supply__result_path(result, index).text, entry->format, column->format);
}

/* The offsets of a held block lie in shared memory, and a task could change them after the check. NULL: no memory. */
static const int32_t *columns_copy_offsets(const supply_column_t *column) {
    int32_t *copy = calloc((size_t)column->element_count + 1, sizeof *copy);
    /* Without rows there may be no offset. */
    if (copy != NULL && column->element_count > 0)
        memcpy(copy, column->offsets, ((size_t)column->element_count + 1) * sizeof *copy);
    return copy;
}

/* Fills in *rows, with offsets of their own. */
static supply_status_t take_column(supply_result_t *result, uint32_t index, const supply_column_t *column,
                                   struct column_rows *rows) {
    TRY(check_written_type(result, index, column));
    *rows = (struct column_rows){.validity = column->validity, .count = column->element_count};
    if (column->offsets != NULL && supply__has_offsets(&result->schema.formats[index])) {
        rows->offsets = columns_copy_offsets(column);
        if (rows->offsets == NULL) return supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    /* A list of a held block points to the data of its child. */
    if (result->schema.entries[index].children > 0) return SUPPLY_OK;
    rows->data = column->data;
    rows->data_bytes = column->data_bytes;
    return SUPPLY_OK;
}

static supply_status_t take_columns(supply_result_t *result, const supply_column_t *columns, struct column_rows *rows) {
    const struct schema *schema = &result->schema;
    for (uint32_t i = 0; i < schema->count; i++) TRY(take_column(result, i, &columns[i], &rows[i]));
    for (uint32_t i = schema->ends[0]; i < schema->count; i = schema->ends[i])
        if (rows[i].count != rows[0].count)
            return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                       "column '%s' has %llu rows and column '%s' has %llu",
                                       supply__schema_name(schema, i), (unsigned long long)rows[i].count,
                                       supply__schema_name(schema, 0), (unsigned long long)rows[0].count);
    return SUPPLY_OK;
}

supply_status_t supply_result_write(supply_result_t *result, const supply_column_t *columns, int count) {
    TRY(supply__result_check_open(result));
    if (columns == NULL || count < 0 || (uint32_t)count != result->schema.count)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "%d columns are written, and it has %u",
                                   columns != NULL ? count : 0, result->schema.count);
    struct column_rows *rows = calloc((size_t)count, sizeof *rows);
    if (rows == NULL) return supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    supply_status_t status = take_columns(result, columns, rows);
    const uint64_t elements = rows[0].count;
    if (status == SUPPLY_OK) status = supply__result_check_rows(result, rows, elements);
    if (status == SUPPLY_OK) status = supply__result_append(result, rows, elements);
    for (int i = 0; i < count; i++) free((int32_t *)rows[i].offsets);
    free(rows);
    return status;
}

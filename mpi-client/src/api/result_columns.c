/**
 * supply_result_open(), supply_result_create() and supply_result_write(): columns by pointer. All that the program
 * gives is checked before a row is appended, so that a block is always valid. They run in the thread that uses the
 * result.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/result.h"
#include "base/shared.h"
#include "files/options.h"
#include "files/result_names.h"

supply_status_t supply__result_begin(supply_result_t **result, const char *name, int64_t count, struct schema *schema) {
    *schema = (struct schema){0};
    if (result == NULL) return SUPPLY_ERROR_ARGUMENT;
    *result = calloc(1, sizeof **result);
    if (*result == NULL) return SUPPLY_ERROR_MEMORY;
    (*result)->file = RESULT_FILE_NONE;
    (*result)->process = getpid();
    if (name == NULL || !supply__result_name_is_valid(name))
        return supply__result_fail(*result, SUPPLY_ERROR_ARGUMENT,
                                   "'%s' cannot be its name: a name has 1 to %d of the characters A-Z a-z 0-9 _ -",
                                   name ? name : "", RESULT_NAME_MAX);
    if (count < 1 || count > SCHEMA_COLUMNS_MAX)
        return supply__result_fail(*result, SUPPLY_ERROR_ARGUMENT, "'%s' has %lld columns: it must have 1 to %d", name,
                                   (long long)count, SCHEMA_COLUMNS_MAX);
    schema->entries = calloc((size_t)count, sizeof *schema->entries);
    if (schema->entries == NULL) return supply__result_fail(*result, SUPPLY_ERROR_MEMORY, "out of memory");
    schema->count = schema->column_count = (uint32_t)count;
    return SUPPLY_OK;
}

static bool copy_text(char *to, size_t to_bytes, const char *text) {
    if (strlen(text) >= to_bytes) return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

supply_status_t supply__result_set_field(supply_result_t *result, struct schema *schema, uint32_t index,
                                         const supply_field_t *field) {
    struct schema_entry *entry = &schema->entries[index];
    const char *child_format = field->child_format != NULL ? field->child_format : "";
    if (field->name == NULL || field->name[0] == '\0' || !copy_text(entry->name, sizeof entry->name, field->name))
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column %u must have a name of 1 to %zu bytes", index,
                                   sizeof entry->name - 1);
    if ((uint32_t)supply__schema_index(schema, entry->name) != index)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "there are two columns '%s': rename one",
                                   entry->name);
    entry->flags = field->nullable ? COLUMN_NULLABLE : 0;
    const bool known = field->format != NULL && copy_text(entry->format, sizeof entry->format, field->format) &&
                       copy_text(entry->child_format, sizeof entry->child_format, child_format) &&
                       supply__schema_format(entry).layout != FORMAT_UNKNOWN &&
                       supply__schema_format(entry).layout < FORMAT_VIEWS &&
                       (child_format[0] == '\0' || supply__schema_format(entry).list_size > 0);
    if (known) return SUPPLY_OK;
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                               "column '%s' has the type '%s'%s%s, which results cannot have: convert it to a boolean, "
                               "a number, a text, bytes, a date, a timestamp in microseconds, a decimal of 128 bits or "
                               "a list of N numbers",
                               entry->name, field->format ? field->format : "", child_format[0] ? " of " : "",
                               child_format);
}

/* Begins a result, with a schema of these fields. Free *schema in any case. */
static supply_status_t begin_with_fields(supply_result_t **result, const char *name, const supply_field_t *fields,
                                         int count, size_t struct_bytes, struct schema *schema) {
    supply_status_t status = supply__result_begin(result, name, fields != NULL ? count : 0, schema);
    for (uint32_t i = 0; status == SUPPLY_OK && fields != NULL && i < schema->count; i++) {
        supply_field_t field;
        supply__copy_sized(&field, sizeof field, (const uint8_t *)fields + i * struct_bytes, struct_bytes);
        status = supply__result_set_field(*result, schema, i, &field);
    }
    return status;
}

supply_status_t supply_result_open_sized(supply_result_t **result, supply_t *supply, const char *name,
                                         const supply_field_t *fields, int count, size_t struct_bytes) {
    struct schema schema;
    supply_status_t status = begin_with_fields(result, name, fields, count, struct_bytes, &schema);
    if (status == SUPPLY_OK) status = supply__result_open_schema(*result, supply, name, &schema);
    supply__schema_free(&schema);
    return status;
}

supply_status_t supply_result_create_sized(supply_result_t **result, const supply_options_t *options, const char *name,
                                           const supply_field_t *fields, int count, size_t struct_bytes) {
    struct schema schema;
    supply_status_t status = begin_with_fields(result, name, fields, count, struct_bytes, &schema);
    if (status == SUPPLY_OK) status = supply__result_create_schema(*result, options, name, &schema);
    supply__schema_free(&schema);
    return status;
}

static const char *column_name(const supply_result_t *result, uint32_t index) {
    return result->schema.entries[index].name;
}

static supply_status_t check_nulls(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                   uint64_t count) {
    if (rows->validity == NULL || (result->schema.entries[index].flags & COLUMN_NULLABLE) != 0) return SUPPLY_OK;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bit = rows->first + i;
        if ((rows->validity[bit / 8] >> bit % 8 & 1) == 0)
            return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                       "column '%s' is not nullable, and its value in row %llu of these is null: make "
                                       "it nullable in the schema, or fill it",
                                       column_name(result, index), (unsigned long long)i);
    }
    return SUPPLY_OK;
}

static supply_status_t check_offsets(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                     uint64_t count, uint64_t data_bytes) {
    const int32_t *offsets = &rows->offsets[rows->first];
    bool decreasing = offsets[0] < 0;
    for (uint64_t i = 0; i < count; i++) decreasing |= offsets[i + 1] < offsets[i];
    if (decreasing || (uint64_t)offsets[count] > data_bytes)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "column '%s': its offsets must begin at 0 or above, never decrease, and end within "
                                   "its data",
                                   column_name(result, index));
    return SUPPLY_OK;
}

static uint64_t bytes_needed(const struct format *format, const struct column_rows *rows, uint64_t count) {
    const uint64_t end = rows->first + count;
    switch (format->layout) {
        case FORMAT_BITS:
            return supply__bitmap_bytes(end);
        case FORMAT_VARIABLE:
            return (uint64_t)rows->offsets[end];
        default:
            return end * format->bytes;
    }
}

supply_status_t supply__result_check_rows(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                          uint64_t count, uint64_t data_bytes) {
    if (count == 0) return SUPPLY_OK;
    const struct format format = supply__schema_format(&result->schema.entries[index]);
    if (format.layout == FORMAT_VARIABLE && rows->offsets == NULL)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "column '%s' has no offsets, which its type '%s' needs", column_name(result, index),
                                   result->schema.entries[index].format);
    supply_status_t status = check_nulls(result, index, rows, count);
    if (status == SUPPLY_OK && format.layout == FORMAT_VARIABLE)
        status = check_offsets(result, index, rows, count, data_bytes);
    if (status != SUPPLY_OK) return status;
    const uint64_t needed = bytes_needed(&format, rows, count);
    if (needed > data_bytes || (needed > 0 && rows->data == NULL))
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' has %llu bytes of data and needs %llu",
                                   column_name(result, index),
                                   (unsigned long long)(rows->data != NULL ? data_bytes : 0),
                                   (unsigned long long)needed);
    return SUPPLY_OK;
}

static supply_status_t check_type(supply_result_t *result, uint32_t index, const supply_column_t *column) {
    const struct schema_entry *entry = &result->schema.entries[index];
    if ((column->format == NULL || strcmp(column->format, entry->format) == 0) &&
        (column->format == NULL || column->child_format == NULL ||
         strcmp(column->child_format, entry->child_format) == 0))
        return SUPPLY_OK;
    return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' has the type '%s', and these rows have '%s'",
                               entry->name, entry->format, column->format);
}

/* The offsets of a held block lie in shared memory, and a task could change them after the check. NULL: no memory. */
static const int32_t *copy_offsets(const supply_column_t *column) {
    int32_t *copy = calloc((size_t)column->element_count + 1, sizeof *copy);
    /* Without rows there may be no offset. */
    const uint64_t count = column->element_count == 0 ? 0 : (uint64_t)column->element_count + 1;
    for (uint64_t i = 0; copy != NULL && i < count; i++) copy[i] = SHARED_READ(column->offsets[i]);
    return copy;
}

/* Fills in *rows, with offsets of their own. */
static supply_status_t take_column(supply_result_t *result, uint32_t index, const supply_column_t *column,
                                   uint32_t count, struct column_rows *rows) {
    if (column->element_count != count)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "column '%s' has %u rows and column '%s' has %u",
                                   column_name(result, index), column->element_count, column_name(result, 0), count);
    const supply_status_t status = check_type(result, index, column);
    if (status != SUPPLY_OK) return status;
    *rows = (struct column_rows){.validity = column->validity, .data = column->data};
    if (column->offsets != NULL && supply__schema_format(&result->schema.entries[index]).layout == FORMAT_VARIABLE) {
        rows->offsets = copy_offsets(column);
        if (rows->offsets == NULL) return supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    return supply__result_check_rows(result, index, rows, count, column->data_bytes);
}

supply_status_t supply_result_write_sized(supply_result_t *result, const supply_column_t *columns, int count,
                                          size_t struct_bytes) {
    supply_status_t status = supply__result_check_open(result);
    if (status != SUPPLY_OK) return status;
    if (columns == NULL || count < 0 || (uint32_t)count != result->schema.count)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT, "%d columns are written, and it has %u",
                                   columns != NULL ? count : 0, result->schema.count);
    struct column_rows *rows = calloc((size_t)count, sizeof *rows);
    if (rows == NULL) return supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
    uint32_t elements = 0;
    for (uint32_t i = 0; i < result->schema.count && status == SUPPLY_OK; i++) {
        supply_column_t column;
        supply__copy_sized(&column, sizeof column, (const uint8_t *)columns + i * struct_bytes, struct_bytes);
        if (i == 0) elements = column.element_count;
        status = take_column(result, i, &column, elements, &rows[i]);
    }
    if (status == SUPPLY_OK) status = supply__result_append(result, rows, elements);
    for (int i = 0; i < count; i++) free((int32_t *)rows[i].offsets);
    free(rows);
    return status;
}

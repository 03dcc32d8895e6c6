#include "result_schema.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "result_names.h"

supply_status_t supply_result_begin(supply_result_t **result, const supply_t *supply, const char *name, int64_t count,
                                    struct schema *schema) {
    *schema = (struct schema){0};
    if (result == NULL) return SUPPLY_ERROR_ARGUMENT;
    *result = calloc(1, sizeof **result);
    if (*result == NULL) return SUPPLY_ERROR_MEMORY;
    (*result)->file = RESULT_FILE_NONE;
    (*result)->process = getpid();
    if (supply == NULL || !supply->is_open)
        return supply_result_fail(*result, SUPPLY_ERROR_ARGUMENT, "the pair is not open: begin a result while it is");
    if (!supply_exports_are_mine(supply->exports))
        return supply_result_fail(*result, SUPPLY_ERROR_ARGUMENT,
                                  "%s was opened by the process from which this one was forked: begin a result there",
                                  supply->pair.name);
    if (name == NULL || !supply_result_name_is_valid(name))
        return supply_result_fail(*result, SUPPLY_ERROR_ARGUMENT,
                                  "'%s' cannot be its name: a name has 1 to %d of the characters A-Z a-z 0-9 _ -",
                                  name ? name : "", RESULT_NAME_MAX);
    if (count < 1 || count > SCHEMA_COLUMNS_MAX)
        return supply_result_fail(*result, SUPPLY_ERROR_ARGUMENT, "'%s' has %lld columns: it must have 1 to %d", name,
                                  (long long)count, SCHEMA_COLUMNS_MAX);
    schema->entries = calloc((size_t)count, sizeof *schema->entries);
    if (schema->entries == NULL) return supply_result_fail(*result, SUPPLY_ERROR_MEMORY, "out of memory");
    schema->count = (uint32_t)count;
    return SUPPLY_OK;
}

static bool copy_text(char *to, size_t to_bytes, const char *text) {
    if (strlen(text) >= to_bytes) return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

supply_status_t supply_result_set_field(supply_result_t *result, struct schema *schema, uint32_t index,
                                        const supply_field_t *field) {
    struct schema_entry *entry = &schema->entries[index];
    const char *child_format = field->child_format != NULL ? field->child_format : "";
    if (field->name == NULL || field->name[0] == '\0' || !copy_text(entry->name, sizeof entry->name, field->name))
        return supply_result_fail(result, SUPPLY_ERROR_ARGUMENT, "column %u must have a name of 1 to %zu bytes", index,
                                  sizeof entry->name - 1);
    if ((uint32_t)supply_schema_index(schema, entry->name) != index)
        return supply_result_fail(result, SUPPLY_ERROR_ARGUMENT, "there are two columns '%s': rename one", entry->name);
    entry->flags = field->nullable ? COLUMN_NULLABLE : 0;
    const bool known = field->format != NULL && copy_text(entry->format, sizeof entry->format, field->format) &&
                       copy_text(entry->child_format, sizeof entry->child_format, child_format) &&
                       supply_schema_format(entry).layout != FORMAT_UNKNOWN &&
                       supply_schema_format(entry).layout != FORMAT_VIEWS &&
                       (child_format[0] == '\0' || supply_schema_format(entry).list_size > 0);
    if (known) return SUPPLY_OK;
    return supply_result_fail(result, SUPPLY_ERROR_ARGUMENT,
                              "column '%s' has the type '%s'%s%s, which results cannot have: convert it to a boolean, "
                              "a number, a text, bytes, a date, a timestamp in microseconds, a decimal of 128 bits or "
                              "a list of N numbers",
                              entry->name, field->format ? field->format : "", child_format[0] ? " of " : "",
                              child_format);
}

#include "columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"

/* Validity, lengths and data. */
enum { BUFFERS_OF_COLUMN = 3 };

bool exchange_is_variable(const struct column_plan *plan) {
    return plan->format.layout == FORMAT_VARIABLE || plan->format.layout == FORMAT_VIEWS;
}

static void add_buffer(struct columns *columns, uint32_t column, enum wire_kind kind) {
    columns->buffers[columns->buffer_count++] =
        (struct wire_buffer){.column = column, .kind = kind, .variable = columns->variable_count};
}

static void plan_column(struct columns *columns, uint32_t index) {
    const struct column_plan *plan = &columns->plans[index];
    const bool is_variable = exchange_is_variable(plan);
    if (plan->is_nullable) add_buffer(columns, index, WIRE_VALIDITY);
    if (is_variable) add_buffer(columns, index, WIRE_LENGTHS);
    add_buffer(columns, index, WIRE_DATA);
    if (plan->is_nullable) columns->fixed_bytes++;
    if (is_variable)
        columns->fixed_bytes += sizeof(int32_t);
    else
        columns->fixed_bytes += plan->format.layout == FORMAT_BITS ? 1 : plan->format.bytes;
    columns->variable_count += is_variable;
}

static uint64_t fingerprint_of(const struct schema *schema) {
    uint64_t fingerprint = schema->count;
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct schema_entry *entry = &schema->entries[i];
        fingerprint = exchange_hash(entry->name, strlen(entry->name), fingerprint);
        fingerprint = exchange_hash(entry->format, strlen(entry->format), fingerprint);
        fingerprint = exchange_hash(entry->child_format, strlen(entry->child_format), fingerprint);
        fingerprint = exchange_mix(fingerprint ^ entry->flags);
    }
    return fingerprint ? fingerprint : 1;
}

/* Plans the columns of columns->schema. */
static supply_status_t plan(struct columns *columns, const char *name, struct failure *failure) {
    struct schema *schema = &columns->schema;
    if (supply_schema_check_texts(schema, failure) != SUPPLY_OK)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s: %s", name, failure->text);
    columns->plans = calloc(schema->count, sizeof *columns->plans);
    columns->buffers = calloc((size_t)schema->count * BUFFERS_OF_COLUMN, sizeof *columns->buffers);
    if (columns->plans == NULL || columns->buffers == NULL)
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", name);
    for (uint32_t i = 0; i < schema->count; i++) {
        struct schema_entry *entry = &schema->entries[i];
        const struct format format = supply_schema_format(entry);
        if (format.layout == FORMAT_UNKNOWN)
            return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                               "%s: column '%s' has format '%s', which this exchange does not know: drop the column, "
                               "or use a newer libsupply_exchange",
                               name, entry->name, entry->format);
        if (format.layout == FORMAT_VIEWS) memcpy(entry->format, "z", sizeof "z");
        columns->plans[i] =
            (struct column_plan){.format = format, .is_nullable = (entry->flags & COLUMN_NULLABLE) != 0};
        plan_column(columns, i);
    }
    columns->fingerprint = fingerprint_of(schema);
    return SUPPLY_OK;
}

static supply_status_t plan_or_free(struct columns *columns, const char *name, struct failure *failure) {
    const supply_status_t status = plan(columns, name, failure);
    if (status != SUPPLY_OK) exchange_columns_free(columns);
    return status;
}

supply_status_t exchange_columns_set(struct columns *columns, const struct schema_entry *entries, uint32_t count,
                                     const char *name, struct failure *failure) {
    columns->schema.entries = malloc(count * sizeof *entries);
    if (columns->schema.entries == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", name);
    memcpy(columns->schema.entries, entries, count * sizeof *entries);
    columns->schema.count = count;
    return plan_or_free(columns, name, failure);
}

static bool is_same(const struct schema_entry *entry, const struct schema_entry *other) {
    return strcmp(entry->name, other->name) == 0 && strcmp(entry->format, other->format) == 0 &&
           strcmp(entry->child_format, other->child_format) == 0 && entry->flags == other->flags;
}

static bool are_same(const struct schema *schema, const struct schema *other) {
    bool same = schema->count == other->count;
    for (uint32_t i = 0; i < schema->count && same; i++) same = is_same(&schema->entries[i], &other->entries[i]);
    return same;
}

supply_status_t exchange_columns_learn(struct columns *columns, supply_t *pair, const char *name,
                                       struct failure *failure) {
    const struct schema_entry *entries;
    uint32_t count;
    struct columns own = {0};
    if (columns->is_of_pair) return SUPPLY_OK;
    supply_status_t status = supply_filler_schema(pair, &entries, &count, failure);
    if (status != SUPPLY_OK || count == 0) return status;
    status = exchange_columns_set(&own, entries, count, name, failure);
    if (status != SUPPLY_OK) return status;
    if (columns->schema.count == 0) {
        *columns = own;
    } else {
        if (!are_same(&columns->schema, &own.schema))
            status = supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s: Spark supplies other columns than to other ranks",
                                 name);
        exchange_columns_free(&own);
    }
    columns->is_of_pair = status == SUPPLY_OK;
    return status;
}

size_t exchange_wire_bytes(const struct columns *columns, const struct wire_buffer *buffer, uint64_t elements,
                           const uint64_t *value_bytes) {
    const struct column_plan *plan = &columns->plans[buffer->column];
    if (buffer->kind == WIRE_VALIDITY) return elements;
    if (buffer->kind == WIRE_LENGTHS) return elements * sizeof(int32_t);
    if (exchange_is_variable(plan)) return value_bytes[buffer->variable];
    return plan->format.layout == FORMAT_BITS ? elements : elements * plan->format.bytes;
}

void exchange_columns_text(const struct columns *columns, char *text, size_t text_bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < columns->schema.count && length < text_bytes; i++) {
        const struct schema_entry *entry = &columns->schema.entries[i];
        length += (size_t)snprintf(text + length, text_bytes - length, "%s'%s' %s%s%s", i > 0 ? ", " : "", entry->name,
                                   entry->format, entry->child_format, columns->plans[i].is_nullable ? "?" : "");
    }
}

void exchange_columns_free(struct columns *columns) {
    supply_schema_free(&columns->schema);
    free(columns->plans);
    free(columns->buffers);
    *columns = (struct columns){0};
}

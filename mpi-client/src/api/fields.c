/**
 * The schema as the program asks for it: names and types of the columns, and a wait for them. The task stores the
 * schema once (A6); it is checked when it is read, and afterwards the handle's own copy is used. Only the thread that
 * uses the handle calls these functions.
 */
#include "api/handle.h"
#include "base/clock.h"
#include "base/wait.h"
#include "supply.h"

/* A wait asks for the schema, because storing it wakes nobody. */
#define PAUSE_SECONDS 1e-3

supply_status_t supply__schema_learn(supply_t *supply) {
    const struct mapped_file_header *header = supply->pair.mapped_file.header;
    const char *name = supply->pair.name;
    if (supply->is_filled && header->schema_columns == 0)
        TRY(supply->filler.learn_schema(supply->filler.context, &supply->failure));
    if (supply->blocks.schema.count == 0 && __atomic_load_n(&header->schema_columns, __ATOMIC_ACQUIRE) == 0)
        return supply__fail(&supply->failure, SUPPLY_ERROR_NO_SCHEMA,
                            "%s: the columns are not known yet: no Spark task has attached", name);
    const supply_status_t status = supply__blocks_learn_schema(&supply->blocks, &supply->pair, &supply->failure);
    if (status != SUPPLY_ERROR_CONTRACT) return status;
    return supply__fail(&supply->failure, status, "%s: the task broke the contract: %s", name, supply->failure.text);
}

static supply_status_t fail_without_schema(supply_t *supply) {
    return supply__fail(
        &supply->failure, SUPPLY_ERROR_TIMEOUT,
        "no Spark task attached to %s within %g s, so its columns are not known: is the Supplier running on "
        "this node with the same mapped-files.conf? (--timeout / SUPPLY_TIMEOUT)",
        supply->pair.name, supply->pair.settings.timeout);
}

supply_status_t supply__filler_check_running(supply_t *supply) {
    const supply_status_t status = supply__pair_check_running(supply__filler_pair(supply), &supply->failure);
    if (status != SUPPLY_OK) supply->broken = supply->failure;
    return status;
}

supply_status_t supply_wait_schema(supply_t *supply) {
    supply_status_t status = supply__check_mine(supply, "supply_wait_schema");
    if (status == SUPPLY_OK) status = supply__check_unbroken(supply);
    if (status != SUPPLY_OK) return status;
    const struct settings *settings = &supply->pair.settings;
    struct wait wait =
        supply__wait_begin_slow((struct wait_limit){settings->timeout, settings->interruption}, PAUSE_SECONDS);
    while ((status = supply__schema_learn(supply)) == SUPPLY_ERROR_NO_SCHEMA) {
        status = supply__wait_more(&wait);
        if (status == SUPPLY_ERROR_TIMEOUT) return fail_without_schema(supply);
        if (status == SUPPLY_OK) status = supply__filler_check_running(supply);
        if (status != SUPPLY_OK) break;
    }
    /* Until then there was none. */
    if (status == SUPPLY_OK || status == SUPPLY_INTERRUPTED) supply->failure.status = SUPPLY_OK;
    return status;
}

supply_status_t supply__schema_check_index(supply_t *supply, int index) {
    TRY(supply__schema_learn(supply));
    if (index < 0 || (uint32_t)index >= supply->blocks.schema.column_count)
        return supply__fail(&supply->failure, SUPPLY_ERROR_NO_COLUMN, "%s: there is no column %d among %u",
                            supply->pair.name, index, supply->blocks.schema.column_count);
    return SUPPLY_OK;
}

supply_status_t supply__schema_check_child(supply_t *supply, uint32_t entry, int child, uint32_t *found) {
    TRY(supply__schema_learn(supply));
    const struct schema *schema = &supply->blocks.schema;
    if (entry >= schema->count)
        return supply__fail(&supply->failure, SUPPLY_ERROR_NO_COLUMN, "%s: the column is not of this handle",
                            supply->pair.name);
    if (child < 0 || (uint32_t)child >= schema->entries[entry].children)
        return supply__fail(&supply->failure, SUPPLY_ERROR_NO_COLUMN, "%s: column '%s' has no child %d among %u",
                            supply->pair.name, supply__schema_name(schema, entry), child,
                            schema->entries[entry].children);
    *found = supply__schema_child(schema, entry, (uint32_t)child);
    return SUPPLY_OK;
}

int supply_column_count(supply_t *supply) {
    TRY(supply__check_open(supply));
    TRY(supply__schema_learn(supply));
    return (int)supply->blocks.schema.column_count;
}

int supply_column_index(supply_t *supply, const char *name) {
    TRY(supply__check_open(supply));
    if (name == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_column_index: name must not be NULL");
    TRY(supply__schema_learn(supply));
    const int index = supply__schema_index(&supply->blocks.schema, name);
    if (index >= 0) return index;
    return supply__fail(&supply->failure, SUPPLY_ERROR_NO_COLUMN, "%s: there is no column '%s' among %u",
                        supply->pair.name, name, supply->blocks.schema.column_count);
}

static supply_field_t field_of(const struct schema *schema, uint32_t index) {
    const struct schema_entry *entry = &schema->entries[index];
    return (supply_field_t){
        .name = supply__schema_name(schema, index),
        .format = entry->format,
        .child_format = supply__schema_child_format(schema, index),
        .nullable = (entry->flags & COLUMN_NULLABLE) != 0,
        .child_count = (int)entry->children,
        .entry = index,
    };
}

supply_status_t supply_field(supply_t *supply, int index, supply_field_t *field) {
    TRY(supply__check_open(supply));
    if (field == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_field: field must not be NULL");
    TRY(supply__schema_check_index(supply, index));
    *field = field_of(&supply->blocks.schema, supply->blocks.schema.columns[index]);
    return SUPPLY_OK;
}

supply_status_t supply_field_child(supply_t *supply, const supply_field_t *field, int child, supply_field_t *found) {
    TRY(supply__check_open(supply));
    if (field == NULL || found == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                            "supply_field_child: field and found must not be NULL");
    uint32_t entry = 0;
    TRY(supply__schema_check_child(supply, field->entry, child, &entry));
    *found = field_of(&supply->blocks.schema, entry);
    return SUPPLY_OK;
}

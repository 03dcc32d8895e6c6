/** What the policies with a key share. */
#include "policy.h"

supply_status_t exchange_find_key(const struct exchange_settings *settings, const struct columns *columns,
                                  const char *purpose, uint32_t *index, struct failure *failure) {
    const int found = supply_schema_index(&columns->schema, settings->column);
    if (found < 0)
        return supply_fail(
            failure, SUPPLY_ERROR_ARGUMENT, "there is no column '%s' to %s by: the first columns are '%s'%s%s%s",
            settings->column, purpose, columns->schema.entries[0].name, columns->schema.count > 1 ? ", '" : "",
            columns->schema.count > 1 ? columns->schema.entries[1].name : "", columns->schema.count > 1 ? "'" : "");
    if (columns->plans[found].is_nullable && !settings->nulls_together)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "the column '%s' to %s by is nullable: set nulls_together, so that its nulls form one "
                           "group, or make it not nullable in Spark",
                           settings->column, purpose);
    *index = (uint32_t)found;
    return SUPPLY_OK;
}

void exchange_group(struct destinations *destinations, const struct draw *draw) {
    uint32_t *ends = destinations->ends;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) ends[rank] = 0;
    for (uint32_t i = 0; i < draw->window->elements; i++) ends[destinations->scratch[i]]++;
    uint32_t begin = 0;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) {
        const uint32_t count = ends[rank];
        ends[rank] = begin;
        begin += count;
    }
    for (uint32_t i = 0; i < draw->window->elements; i++) destinations->order[ends[destinations->scratch[i]]++] = i;
}

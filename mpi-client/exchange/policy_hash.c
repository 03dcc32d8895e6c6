#include <inttypes.h>

#include "mix.h"
#include "policy.h"

/* Of all elements whose key is null. */
#define HASH_OF_NULL 0

static supply_status_t find_column(const struct exchange_settings *settings, const struct columns *columns,
                                   uint32_t *index, struct failure *failure) {
    const int found = supply_schema_index(&columns->schema, settings->column);
    if (found < 0)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "there is no column '%s' to hash by: its first columns are '%s'%s%s%s", settings->column,
                           columns->schema.entries[0].name, columns->schema.count > 1 ? ", '" : "",
                           columns->schema.count > 1 ? columns->schema.entries[1].name : "",
                           columns->schema.count > 1 ? "'" : "");
    if (columns->plans[found].is_nullable && !settings->nulls_together)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "the column '%s' to hash by is nullable: set nulls_together, so that its nulls form one "
                           "group, or make it not nullable in Spark",
                           settings->column);
    *index = (uint32_t)found;
    return SUPPLY_OK;
}

static uint64_t hash_of(const supply_column_t *column, const struct format *format, uint32_t row) {
    if (column->validity != NULL && !(column->validity[row / 8] >> row % 8 & 1)) return HASH_OF_NULL;
    const uint8_t *data = column->data;
    if (format->layout == FORMAT_FIXED)
        return exchange_hash(data + (size_t)row * format->bytes, format->bytes, 0);
    if (format->layout == FORMAT_BITS) {
        const uint8_t bit = data[row / 8] >> row % 8 & 1;
        return exchange_hash(&bit, sizeof bit, 0);
    }
    const uint32_t bytes = exchange_value_bytes(column, row);
    const uint8_t *value = exchange_value(column, row, bytes);
    return value != NULL ? exchange_hash(value, bytes, 0) : HASH_OF_NULL;
}

supply_status_t exchange_prepare_hash(struct destinations *destinations, const struct exchange_settings *settings,
                                      const struct columns *columns, const struct draw *draw,
                                      struct failure *failure) {
    uint32_t column = 0;
    const supply_status_t status = find_column(settings, columns, &column, failure);
    if (status != SUPPLY_OK) return status;
    for (uint32_t i = 0; i < draw->window->piece_count; i++) {
        const struct piece *piece = &draw->window->pieces[i];
        for (uint32_t k = 0; k < piece->count; k++) {
            const uint64_t hash =
                hash_of(&piece->held->columns[column], &columns->plans[column].format, piece->row + k);
            destinations->scratch[piece->start + k] = (uint32_t)((hash >> 32) * draw->ranks >> 32);
        }
    }
    return SUPPLY_OK;
}

/* Groups the elements by their destination, each group in the order of the window. */
void exchange_draw_hash(struct destinations *destinations, const struct draw *draw) {
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

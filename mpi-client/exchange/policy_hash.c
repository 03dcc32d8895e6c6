#include "mix.h"
#include "policy.h"

/* Of all elements whose key is null. */
#define HASH_OF_NULL 0

static uint64_t hash_of(const supply_column_t *column, const struct format *format, uint32_t row) {
    if (column->validity != NULL && !(column->validity[row / 8] >> row % 8 & 1)) return HASH_OF_NULL;
    const uint8_t *data = column->data;
    if (format->layout == FORMAT_FIXED) return exchange_hash(data + (size_t)row * format->bytes, format->bytes, 0);
    if (format->layout == FORMAT_BITS) {
        const uint8_t bit = data[row / 8] >> row % 8 & 1;
        return exchange_hash(&bit, sizeof bit, 0);
    }
    const uint32_t bytes = exchange_value_bytes(column, row);
    const uint8_t *value = exchange_value(column, row, bytes);
    return value != NULL ? exchange_hash(value, bytes, 0) : HASH_OF_NULL;
}

supply_status_t exchange_prepare_hash(struct destinations *destinations, const struct exchange_settings *settings,
                                      const struct columns *columns, const struct draw *draw, struct failure *failure) {
    uint32_t column = 0;
    const supply_status_t status = exchange_find_key(settings, columns, "hash", &column, failure);
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

void exchange_draw_hash(struct destinations *destinations, const struct draw *draw) {
    exchange_group(destinations, draw);
}

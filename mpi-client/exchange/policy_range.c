#include "policy.h"

supply_status_t exchange_prepare_range(const struct exchange_settings *settings, const struct columns *columns,
                                       struct range *range, struct failure *failure) {
    const supply_status_t status = exchange_find_key(settings, columns, "sort", &range->by.index, failure);
    if (status != SUPPLY_OK) return status;
    const char *format = columns->schema.entries[range->by.index].format;
    range->by.order = exchange_key_order(format);
    if (range->by.order != NULL) return SUPPLY_OK;
    return supply_fail(
        failure, SUPPLY_ERROR_ARGUMENT,
        "the column '%s' to sort by has format '%s', whose values have no order: sort by a number, a bit, "
        "text or bytes",
        settings->column, format);
}

void exchange_draw_range(struct destinations *destinations, const struct draw *draw) {
    const struct sort_column *by = &draw->range->by;
    for (uint32_t i = 0; i < draw->window->piece_count; i++) {
        const struct piece *piece = &draw->window->pieces[i];
        for (uint32_t k = 0; k < piece->count; k++) {
            struct sort_key key;
            exchange_key_read(by->order, &piece->held->columns[by->index], piece->row + k, &key);
            destinations->scratch[piece->start + k] =
                key.is_null ? draw->ranks - 1 : exchange_range_rank(draw->range, &key);
        }
    }
}

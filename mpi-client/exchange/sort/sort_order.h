/** The order of a window's elements by the values of one column. */
#ifndef SUPPLY_EXCHANGE_SORT_ORDER_H
#define SUPPLY_EXCHANGE_SORT_ORDER_H

#include "sort_key.h"
#include "window.h"

/** The column by which elements are sorted. */
struct sort_column {
    uint32_t index;
    const struct key_order *order;
};

/** Bytes that exchange_sort_window() needs for each element. */
#define SORT_BYTES_OF_ELEMENT 36

/**
 * The indices of the window's elements, in the order of their values; equal ones as they stand. Free it. NULL: out of
 * memory, or the window is empty.
 */
uint32_t *exchange_sort_window(const struct gathered_window *window, const struct sort_column *by);

/** Reads the key of an element of a window. */
static inline void exchange_read_key(const struct gathered_window *window, const struct sort_column *by,
                                     uint32_t element, struct sort_key *key) {
    uint32_t row;
    const struct piece *piece = exchange_window_find(window, element, &row);
    exchange_key_read(by->order, &piece->held->columns[by->index], row, key);
}

#endif

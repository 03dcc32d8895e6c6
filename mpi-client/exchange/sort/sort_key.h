/**
 * The order of a column's values, as Spark sorts them: numbers by value (NaN after all others, −0 equal to 0), false
 * before true, text and bytes by their bytes, nulls last; and the order of a window's elements by it.
 */
#pragma once

#include "supply.h"
#include "window.h"

/** A value, read from a column. */
struct sort_key {
    uint64_t prefix;
    const void *rest; /**< bytes, compared as by memcmp() */
    size_t rest_bytes;
    uint8_t scratch[8]; /**< for a rest that the column does not have in this form */
    bool is_null;
};

/** How the values of one format are ordered. */
struct key_order {
    /** Smaller for smaller values. Equal for equal values, and for unequal ones only if `rest` is not NULL. */
    uint64_t (*prefix)(const supply_column_t *column, uint32_t index);
    /** Fills in the key's rest, which orders values with the same prefix; NULL: the prefix is exact. */
    void (*rest)(const supply_column_t *column, uint32_t index, struct sort_key *key);
};

/** The order of values of a format; NULL: they have none (lists). */
const struct key_order *exchange_key_order(const char *format);

/** Reads the key of an element. It points into the column, and into itself. */
void exchange_key_read(const struct key_order *order, const supply_column_t *column, uint32_t index,
                       struct sort_key *key);

/** Below 0, 0 or above 0, as memcmp(). */
int exchange_key_compare(const struct sort_key *a, const struct sort_key *b);

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

/** Copies values of elements out of a window, column by column. */
#ifndef SUPPLY_EXCHANGE_PACK_H
#define SUPPLY_EXCHANGE_PACK_H

#include "window.h"

/** Some elements of a window, in the order in which they are sent. */
struct pick {
    const struct gathered_window *window;
    const uint32_t *order; /**< indices */
    uint32_t count;
};

/** The lengths of values of any length. */
void exchange_pack_lengths(const struct pick *pick, uint32_t column, int32_t *to);

/** The values, of these lengths. False: what was checked has changed since, and bytes are 0 instead. */
bool exchange_pack_values(const struct pick *pick, uint32_t column, const int32_t *lengths, uint8_t *to);

/** The values of a column of fixed width, or of bits: a byte for each. */
void exchange_pack_data(const struct pick *pick, uint32_t column, const struct format *format, uint8_t *to);

/** A byte for each element: 1 if it is valid. */
void exchange_pack_validity(const struct pick *pick, uint32_t column, uint8_t *to);

#endif

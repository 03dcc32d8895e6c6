/**
 * Arrow's other layouts of texts, bytes and lists: 64-bit offsets ("U", "Z", "+L") and views ("vu", "vz"), which become
 * 32-bit offsets.
 */
#ifndef SUPPLY_ARROW_OFFSETS_H
#define SUPPLY_ARROW_OFFSETS_H

#include "block/block_writer.h"
#include "supply_arrow.h"

/** What a conversion allocates. Free it with supply__arrow_offsets_free(). */
struct arrow_offsets {
    int32_t *offsets;
    uint8_t *data;          /**< of views */
    bool is_without_memory; /**< why it fails */
};

/** Whether a format is one of these. */
bool supply__arrow_is_other(const char *format);

/** "u", "z" or "+l" for each of these; every other format as it is. */
const char *supply__arrow_format(const char *format);

/**
 * Converts these rows of an array of such a format. Fills in the offsets of *rows, and the data of texts and bytes.
 * *base: where the data, or the child, begins in that of the array. NULL, or why it fails. Free *converted in any case.
 */
const char *supply__arrow_offsets_convert(const char *format, const struct ArrowArray *array, struct row_range range,
                                          struct arrow_offsets *converted, struct column_rows *rows, int64_t *base);

void supply__arrow_offsets_free(struct arrow_offsets *converted);

#endif

/** Texts and bytes of Arrow with 64-bit offsets or as views, as columns with 32-bit offsets. */
#ifndef SUPPLY_ARROW_TEXTS_H
#define SUPPLY_ARROW_TEXTS_H

#include "block_writer.h"
#include "supply_arrow.h"

/** "U", "Z", "vu" or "vz". */
bool supply_arrow_text_is_other(const char *format);

/** "u" or "z" for each of these; every other format as it is. */
const char *supply_arrow_text_format(const char *format);

/** What a conversion allocates. Free it with supply_arrow_text_free(). */
struct arrow_text {
    int32_t *offsets;
    uint8_t *data;
    bool is_without_memory; /**< why it fails */
};

/**
 * Converts `count` rows of an array of such a format, from rows->first on. Fills in the offsets and the data of *rows.
 * NULL, or why it fails. Free *text in any case.
 */
const char *supply_arrow_text_convert(const char *format, const struct ArrowArray *array, uint64_t count,
                                      struct arrow_text *text, struct column_rows *rows);
void supply_arrow_text_free(struct arrow_text *text);

#endif

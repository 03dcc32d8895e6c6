/** One buffer of a column of a block that is being made: staged in memory that is reused. Mirrors ColumnBuffer.scala.
 */
#ifndef SUPPLY_COLUMN_BUFFER_H
#define SUPPLY_COLUMN_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes, or bits with the least significant first. */
struct column_buffer {
    uint8_t *bytes;
    size_t size; /**< in bytes; bits: those that are begun */
    size_t capacity;
};

static inline size_t supply_bitmap_bytes(uint64_t bits) { return (size_t)(bits / 8 + (bits % 8 != 0)); }

/** Space for `count` more bytes, which count as written. NULL: no memory. */
uint8_t *supply_buffer_reserve(struct column_buffer *buffer, size_t count);

/** Appends bits `first` to `first + count - 1` of a bitmap, after `size` bits. NULL: ones. False: no memory. */
bool supply_buffer_append_bits(struct column_buffer *buffer, uint64_t size, const uint8_t *bits, uint64_t first,
                               uint64_t count);

/** How many of the bits `first` to `first + count - 1` are 0. */
uint64_t supply_bits_count_zeros(const uint8_t *bits, uint64_t first, uint64_t count);

void supply_buffer_free(struct column_buffer *buffer);

#endif

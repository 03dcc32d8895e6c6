/** Where the parts of a block begin (proto/PROTOCOL.md, "Block"). */
#ifndef SUPPLY_BLOCK_LAYOUT_H
#define SUPPLY_BLOCK_LAYOUT_H

#include <stddef.h>

#include "layout.h"

/** The bytes with what aligns the next buffer. */
static inline size_t supply_aligned(size_t bytes) {
    return (bytes + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

/** Bytes in front of the first buffer: the header and the table of that many columns. */
static inline size_t supply_block_header_bytes(uint32_t columns) {
    return supply_aligned(sizeof(struct block_header) + columns * sizeof(struct block_column));
}

#endif

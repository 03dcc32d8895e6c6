/**
 * Makes blocks: rows are appended to buffers for each column, and a full block is laid out for one write. Mirrors
 * BlockWriter.scala and ColumnBuffer.scala (proto/PROTOCOL.md, "Block").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "block/schema.h"

/** Bytes, or bits with the least significant first. */
struct column_buffer {
    uint8_t *bytes;
    size_t size; /**< in bytes; bits: those that are begun */
    size_t capacity;
};

static inline size_t supply__bitmap_bytes(uint64_t bits) { return (size_t)(bits / 8 + (bits % 8 != 0)); }

/** How many of the bits `first` to `first + count - 1` are 0. */
uint64_t supply__bits_count_zeros(const uint8_t *bits, uint64_t first, uint64_t count);

/** Rows of one column, or of a child, to append: buffers in Arrow's layout, in the program's memory. */
struct column_rows {
    const uint8_t *validity; /**< bit set: the row has a value; NULL: all have */
    const int32_t *offsets;  /**< of a column with values of any length, or of a list; else NULL */
    const uint8_t *data;
    uint64_t data_bytes; /**< of data, as far as the program says */
    uint64_t first;      /**< index of the first row in these buffers */
    uint64_t count;      /**< rows from there on */
};

/** The rows `from` to `end - 1` of a column or a child. */
struct row_range {
    uint64_t from, end;
};

/** Those rows of a child that belong to these of its parent, whose offsets are checked. */
struct row_range supply__child_range(const struct format *format, const struct column_rows *rows,
                                     struct row_range range);

struct block_writer {
    const struct schema *schema; /**< borrowed */
    size_t block_bytes;
    uint32_t rows;                 /**< in the block under construction */
    struct staged_column *columns; /**< of the entries of the schema */
    struct row_range *ranges;      /**< of the entries: what is measured or appended */
    struct block_header *header;   /**< with its columns, as long as the buffers' place begins */
    struct iovec *pieces;          /**< of the block that is laid out */
};

/** SUPPLY_OK, or _CONFIG (the column table does not fit into a block), _MEMORY. Free *writer in any case. */
supply_status_t supply__block_writer_init(struct block_writer *writer, const struct schema *schema, size_t block_bytes,
                                          struct failure *failure);
void supply__block_writer_free(struct block_writer *writer);

/** How many of the rows `from` to `end - 1` fit into the block under construction. rows: of each entry. */
uint64_t supply__block_writer_fit(const struct block_writer *writer, const struct column_rows *rows, uint64_t from,
                                  uint64_t end);

/** Bytes of a block with what is under construction and this row. */
uint64_t supply__block_writer_bytes_with(const struct block_writer *writer, const struct column_rows *rows,
                                         uint64_t row);

/** What to set as block= for a block of that size: a power of two, so that the next row fits, too. */
static inline unsigned long long supply__block_bytes_for(uint64_t bytes) {
    unsigned long long block = BLOCK_BYTES_UNIT;
    while (block < bytes) block *= 2;
    return block;
}

/** Bytes that one row needs in the data of this entry. */
uint64_t supply__block_writer_row_bytes(const struct block_writer *writer, uint32_t entry,
                                        const struct column_rows *rows, uint64_t row);

/** Appends rows that fit. False: no memory, and the block is spoiled. */
bool supply__block_writer_append(struct block_writer *writer, const struct column_rows *rows, uint64_t from,
                                 uint64_t end);

/**
 * Lays out the block and begins the next one: fills in writer->pieces and the columns of writer->header, whose
 * notification is the caller's, except element_count and size. Returns the number of pieces, which stay valid until the
 * next append.
 */
int supply__block_writer_lay_out(struct block_writer *writer);

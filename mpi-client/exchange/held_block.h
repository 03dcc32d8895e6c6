/** A block of the pair that windows use: in its ring, or in a private copy. */
#ifndef SUPPLY_EXCHANGE_HELD_BLOCK_H
#define SUPPLY_EXCHANGE_HELD_BLOCK_H

#include "columns.h"
#include "shared.h"

struct held_block {
    supply_block_t block;
    supply_column_t *columns;
    uint8_t *copy;           /**< NULL: the block lies in the ring */
    uint32_t users;          /**< pieces of windows, and the gathering itself */
    struct held_block *next; /**< the next newer one */
};

/** A block that supply_next() has just returned, with one user. NULL and a failure: the block is released. */
struct held_block *exchange_hold(supply_t *pair, const supply_block_t *block, const struct columns *columns,
                                 struct failure *failure);

/** Copies the block to private memory and releases it in the ring. SUPPLY_OK, or a failure. */
supply_status_t exchange_copy_held(struct held_block *held, supply_t *pair, uint32_t column_count,
                                   struct failure *failure);

/** Releases the block in the ring, unless it is copied, and frees it. pair NULL: in a forked child. */
void exchange_free_held(struct held_block *held, supply_t *pair, uint32_t column_count);

/** Whether that element is null. */
static inline bool exchange_is_null(const supply_column_t *column, uint32_t row) {
    return column->validity != NULL && (column->validity[row / 8] >> row % 8 & 1) == 0;
}

/** Length of a value of any length. Offsets are in shared memory: those that have changed since their check give 0. */
static inline uint32_t exchange_value_bytes(const supply_column_t *column, uint32_t row) {
    if (column->views != NULL) {
        const int32_t bytes = SHARED_READ(column->views[row].bytes);
        return bytes > 0 ? (uint32_t)bytes : 0;
    }
    const int32_t begin = SHARED_READ(column->offsets[row]), end = SHARED_READ(column->offsets[row + 1]);
    return begin >= 0 && end > begin ? (uint32_t)(end - begin) : 0;
}

/** Where a value of that length lies. NULL: it has changed since its check. */
const uint8_t *exchange_value(const supply_column_t *column, uint32_t row, uint32_t bytes);

/** The failure of a rank whose task has changed lengths since they were gathered. SUPPLY_ERROR_CONTRACT. */
supply_status_t exchange_fail_by_change(struct failure *failure);

/** Bytes in transfer of `count` elements from `first` on. */
uint64_t exchange_rows_bytes(const struct held_block *held, const struct columns *columns, uint32_t first,
                             uint32_t count);

#endif

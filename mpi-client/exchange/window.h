/** What one rank contributes to one exchange: its next elements, in pieces of held blocks of the pair. */
#pragma once

#include "settings.h"
#include "base/position.h"
#include "base/shared.h"

struct held_block {
    supply_block_t block;
    supply_column_t *columns;
    uint8_t *copy;           /**< NULL: the block lies in the ring */
    size_t packed_bytes;     /**< of its columns with children, in memory of their own */
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

struct piece {
    struct held_block *held;
    uint32_t row;   /**< first row of the block */
    uint32_t count; /**< rows */
    uint32_t start; /**< index of the first of them in the window */
};

/** What follows a window. Agreed upon by all ranks, so the numbers are fixed. */
enum window_end { WINDOW_GOES_ON = 0, WINDOW_ENDS_EPOCH = 1, WINDOW_ENDS_DATA = 2 };

#define EPOCH_UNKNOWN UINT32_MAX

struct gathered_window {
    struct piece *pieces;
    uint32_t piece_count;
    uint32_t piece_capacity;
    uint32_t elements;
    size_t bytes;          /**< in transfer, when they were gathered */
    uint32_t epoch;        /**< EPOCH_UNKNOWN: neither elements nor an end of an epoch */
    struct position start; /**< of the pair */
    enum window_end end;
    bool is_complete;

    /** For each 2^shift elements, the piece of the first of them. */
    uint32_t *cells;
    uint32_t cell_capacity;
    unsigned shift;
};

/** Adds rows of the block, which gets one more user. False: out of memory. */
bool exchange_window_add(struct gathered_window *window, struct held_block *held, uint32_t row, uint32_t count);

/** After the last exchange_window_add(): prepares exchange_window_find(). False: out of memory. */
bool exchange_window_complete(struct gathered_window *window);

/** Empties the window, but for its memory. The caller has freed the users of the blocks. */
void exchange_window_clear(struct gathered_window *window);
void exchange_window_free(struct gathered_window *window);

/** The piece and the row of element `index`. */
static inline const struct piece *exchange_window_find(const struct gathered_window *window, uint32_t index,
                                                       uint32_t *row) {
    const struct piece *piece = &window->pieces[window->cells[index >> window->shift]];
    while (index - piece->start >= piece->count) piece++;
    *row = piece->row + (index - piece->start);
    return piece;
}

/**
 * Sorts what a handle receives in an epoch, by one column: a filler whose elements come from another handle. It keeps
 * all elements of the epoch, in memory or in sorted runs in files, and then returns them in order.
 */
#pragma once

#include "api/filler.h"
#include "transfer.h"
#include "sort_key.h"
#include "window.h"

struct run_block {
    size_t offset; /**< in the file */
    size_t bytes;
    uint32_t elements;
    uint32_t run; /**< number of the run, from 0 */
};

struct sort_runs {
    bool is_open;
    int fd;
    size_t bytes;
    uint8_t *mapping; /**< of the whole file; NULL: not mapped */
    struct run_block *blocks;
    uint32_t block_count;
    uint32_t count; /**< runs */
};

/** A sorted sequence of elements. */
struct sequence {
    const uint32_t *order; /**< indices; NULL: the elements stand in their order */
    uint32_t at;
    uint32_t end;
    struct sort_key key; /**< of element `at` */
};

/** A heap of sequences that are not empty, the one with the smallest element on top. */
struct merge {
    const struct gathered_window *window;
    const struct sort_column *by;
    struct sequence **heap;
    uint32_t count;
};

/** The index of the smallest element that is left. merge->count is not 0. */
static inline uint32_t exchange_merge_peek(const struct merge *merge) {
    const struct sequence *top = merge->heap[0];
    return top->order ? top->order[top->at] : top->at;
}

/** Goes to the next one. */
void exchange_merge_pop(struct merge *merge);

/** What it points to outlives the handle. */
struct sorter_options {
    const char *column;
    size_t memory_bytes;                     /**< of the elements that are kept in memory */
    const char *folder;                      /**< of the runs; not NULL */
    size_t block_bytes;                      /**< of the elements of a block */
    const uint64_t *settings;                /**< fingerprint of the exchange, known from the first block on */
    const struct mapped_file_header *header; /**< of the pair */
    struct position start; /**< at which the program opened the pair: says how many sorted elements are consumed */
    /** Makes the inner handle fail on all ranks, with this failure. */
    void (*fail)(void *exchange, const struct failure *failure);
    void *exchange;
};

/**
 * Replaces *supply by a handle that sorts it by options->column, and owns it. SUPPLY_OK, or _MEMORY: then *supply is as
 * before.
 */
supply_status_t exchange_sort(supply_t **supply, const struct sorter_options *options, struct failure *failure);

/* The state of a sorter. */

struct sorter {
    supply_t *inner;  /**< where the elements come from */
    supply_t *handle; /**< of the program */
    struct filler_pair inspected;
    struct sorter_options options;
    struct columns columns;
    struct slot_layout layout;
    struct sort_column by;

    struct gathered_window window; /**< the elements that are kept: of the epoch, or since the last run */
    size_t kept_bytes;
    uint64_t kept_elements; /**< of the epoch, with those in runs */
    struct sort_runs runs;

    bool is_sorted;        /**< the epoch has ended, and its elements are returned in order */
    bool ends_data;        /**< the data has ended, too, in the middle of the epoch */
    struct failure failed; /**< the inner exchange reports it to all ranks */
    uint32_t epoch;        /**< of what is kept */
    uint32_t *order;       /**< of the window; NULL: the window is that of the runs */
    struct sequence *sequences;
    struct merge merge;
    uint64_t returned;         /**< elements of the epoch, those that an earlier run has consumed included */
    struct source_row *picked; /**< the elements of a block */
    uint32_t picked_capacity;
};

/** Keeps a block that the inner handle has returned, and writes a run if there is too much. SUPPLY_OK, or a failure. */
supply_status_t exchange_keep(struct sorter *sorter, const supply_block_t *block, struct failure *failure);

/** The epoch has ended: prepares exchange_take_sorted(). SUPPLY_OK, or a failure. */
supply_status_t exchange_sort_kept(struct sorter *sorter, struct failure *failure);

/** Makes a block of the next sorted elements, at least one. SUPPLY_OK, or a failure. */
supply_status_t exchange_take_sorted(struct sorter *sorter, const struct slot *slot, uint32_t *elements, size_t *bytes,
                                     struct failure *failure);

/** Drops everything that is kept. */
void exchange_drop_kept(struct sorter *sorter);

/** The state of a sorter. */
#ifndef SUPPLY_EXCHANGE_SORTER_STATE_H
#define SUPPLY_EXCHANGE_SORTER_STATE_H

#include "slot.h"
#include "sort_merge.h"
#include "sort_run.h"
#include "sorter.h"

struct sorter {
    supply_t *inner;  /**< where the elements come from */
    supply_t *handle; /**< of the program */
    struct filler_pair inspected;
    struct sorter_options options;
    char *column;
    char *folder;
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
    uint64_t returned; /**< elements of the epoch, those that an earlier run has consumed included */
    uint32_t *picked;  /**< the elements of a block */
    uint32_t picked_capacity;
};

/** Keeps a block that the inner handle has returned, and writes a run if there is too much. SUPPLY_OK, or a failure. */
supply_status_t exchange_keep(struct sorter *sorter, const supply_block_t *block, struct failure *failure);

/** The epoch has ended: prepares exchange_take_sorted(). SUPPLY_OK, or a failure. */
supply_status_t exchange_sort_kept(struct sorter *sorter, struct failure *failure);

/** Drops sorted elements that an earlier run has consumed. */
void exchange_skip_sorted(struct sorter *sorter, uint64_t count);

/** Makes a block of the next sorted elements, at least one. SUPPLY_OK, or a failure. */
supply_status_t exchange_take_sorted(struct sorter *sorter, const struct slot *slot, uint32_t *elements, size_t *bytes,
                                     struct failure *failure);

/** Drops everything that is kept. */
void exchange_drop_kept(struct sorter *sorter);

#endif

/**
 * Sorts what a handle receives in an epoch, by one column: a filler whose elements come from another handle. It keeps
 * all elements of the epoch, in memory or in sorted runs in files, and then returns them in order.
 */
#ifndef SUPPLY_EXCHANGE_SORTER_H
#define SUPPLY_EXCHANGE_SORTER_H

#include "filler.h"

struct sorter_options {
    const char *column;
    size_t memory_bytes;      /**< of the elements that are kept in memory */
    const char *folder;       /**< of the runs; not NULL */
    size_t block_bytes;       /**< of the elements of a block */
    const uint64_t *settings; /**< fingerprint of the exchange, known from the first block on; outlives the handle */
    const struct mapped_file_header *header; /**< of the pair; outlives the handle */
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

#endif

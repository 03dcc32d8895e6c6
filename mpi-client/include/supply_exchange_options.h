/** Which element goes to which rank. Programs include supply_exchange.h, which includes this file. */
#ifndef SUPPLY_EXCHANGE_OPTIONS_H
#define SUPPLY_EXCHANGE_OPTIONS_H

#include "supply_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which rank an element goes to. */
typedef enum supply_exchange_policy {
    /** What Spark says in the pair's header: today ALL, with --shuffle all; an error if Spark says nothing. */
    SUPPLY_EXCHANGE_AS_SUPPLIED = 0,
    /**
     * Each window is put in an order drawn from (seed, epoch, window, rank), and dealt to the ranks in turn. Every rank
     * receives the same number of elements of each window, and may receive one more of the last window of an epoch. So
     * a program may synchronize its ranks in each step.
     */
    SUPPLY_EXCHANGE_ALL = 1,
    /** All elements with the same value in a column go to the same rank (GroupBy). */
    SUPPLY_EXCHANGE_HASH = 2,
    /** Only the surplus moves, until every rank receives the same number, as with ALL. */
    SUPPLY_EXCHANGE_BALANCE = 3,
    /**
     * A global order (SortBy): the elements of rank 0 in the order of a column, then those of rank 1, and so on. Nulls
     * come last. Equal values, and nulls, may be on several ranks. A sample of the first windows divides the values
     * among the ranks, so a source that is in order already divides badly. A rank gets its first block when the whole
     * epoch has arrived.
     */
    SUPPLY_EXCHANGE_RANGE = 4,
} supply_exchange_policy_t;

/**
 * Options of an exchange. Call supply_exchange_options_init() first. All ranks must set the same, but for
 * messages_only.
 */
typedef struct supply_exchange_options_t {
    size_t struct_bytes; /**< set by supply_exchange_options_init() */

    supply_exchange_policy_t policy;
    /** ALL: the part of each window that is dealt, above 0 and at most 1; the rest stays. 0: what Spark says, or 1. */
    double fraction;
    /** ALL: seed of the order. 0: what Spark says, or 0. */
    uint64_t seed;
    /**
     * HASH, RANGE: name of the column. It must not be nullable, unless nulls_together is set. With RANGE no list:
     * numbers have the order of their values (NaN after all others), text and bytes that of their bytes.
     */
    const char *column;
    /** HASH, RANGE: elements whose value is null form one group. */
    bool nulls_together;
    /**
     * Bytes of a window: of the elements that a rank contributes to one exchange. An element counts the bytes of its
     * values, 4 more for each value of any length, and 1 for each bit. No element may be larger. 0: half of the pair's
     * ring. At most 512 MiB. Each rank needs three times 1.25 windows of memory to receive, and 2.25 for messages, if
     * there are any.
     */
    size_t window_bytes;
    /** RANGE: what a rank keeps in memory of an epoch; more goes to spill_folder, sorted. 0: 1 GiB. */
    size_t memory_bytes;
    /** RANGE: folder of files without names, which are gone with the process. NULL: TMPDIR, or /tmp. */
    const char *spill_folder;
    /**
     * Ranks that can map each other's memory (one machine, one user, one namespace of processes) copy their elements
     * into it. True: this rank takes no part in that, so all of its elements are messages.
     */
    bool messages_only;
} supply_exchange_options_t;

/** Sets every option to "not set". */
static inline void supply_exchange_options_init(supply_exchange_options_t *options) {
    const supply_exchange_options_t not_set = {
        sizeof not_set, SUPPLY_EXCHANGE_AS_SUPPLIED, 0, 0, NULL, false, 0, 0, NULL, false};
    *options = not_set;
}

#ifdef __cplusplus
}
#endif

#endif

/** The policy RANGE: each rank gets the keys between two splitters, which are quantiles of a sample of all ranks. */
#ifndef SUPPLY_EXCHANGE_RANGE_H
#define SUPPLY_EXCHANGE_RANGE_H

#include "sort/sort_order.h"

/** Bytes of a value of any length that a sample keeps. A value cut off divides as well as a whole one. */
#define SAMPLE_REST_BYTES 48

/** A key in a message. */
struct sample {
    uint64_t prefix;
    uint32_t is_used;
    uint32_t rest_bytes;
    uint8_t rest[SAMPLE_REST_BYTES];
};

struct range {
    struct sort_column by;
    uint32_t ranks;
    uint32_t of_rank; /**< samples of each rank */
    struct sample *mine;
    struct sample *all; /**< of all ranks; then sorted */
    struct sample
        *splitters; /**< in order; a key goes to the rank with the number of splitters that are not above it */
    uint32_t splitter_count;
};

/** SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_range_init(struct range *range, uint32_t ranks, struct failure *failure);
void exchange_range_free(struct range *range);

/** Fills in range->mine from the first window of this rank. */
void exchange_range_sample(struct range *range, const struct gathered_window *window);

/** Finds the splitters in range->all, the same on all ranks. */
void exchange_range_split(struct range *range);

/** The rank that gets that key. */
uint32_t exchange_range_rank(const struct range *range, const struct sort_key *key);

#endif

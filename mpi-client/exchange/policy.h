/**
 * The destination of each element of a window, and the order in which a rank sends them. RANGE gives each rank the keys
 * between two splitters, which are quantiles of a sample of all ranks.
 */
#pragma once

#include "settings.h"
#include "sort/sort_key.h"
#include "window.h"

/** Bytes of a value of any length that a sample keeps. A value cut off divides as well as a whole one. */
#define SAMPLE_REST_BYTES 48

#define SAMPLE_WEIGHT 65536

/** A key in a message. */
struct sample {
    uint64_t prefix;
    uint64_t tie;    /**< orders equal keys: random, but the same in each run */
    uint64_t weight; /**< elements that it stands for, in SAMPLE_WEIGHT; 0: it is not used */
    uint32_t is_null;
    uint32_t rest_bytes;
    uint8_t rest[SAMPLE_REST_BYTES];
};

struct range {
    struct sort_column by;
    uint32_t ranks;
    uint32_t of_rank; /**< samples of each rank */
    struct sample *mine;
    struct sample *all;       /**< of all ranks; then sorted */
    struct sample *splitters; /**< in order; a key goes to the rank with the number of splitters not above it */
    uint32_t splitter_count;
};

/** SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_range_init(struct range *range, uint32_t ranks, struct failure *failure);
void exchange_range_free(struct range *range);

/** Fills in range->mine from the first window of this rank. */
void exchange_range_sample(struct range *range, const struct gathered_window *window);

/** Finds the splitters in range->all, the same on all ranks. */
void exchange_range_split(struct range *range);

/** Where an element lies. */
struct source_row {
    const supply_column_t *columns; /**< of its held block, which is not copied before the elements have moved */
    uint32_t row;
};

/** The elements of a window in the order of their destinations. */
struct destinations {
    uint32_t *order;         /**< indices of elements */
    struct source_row *rows; /**< of the same elements: each is found once, not for each column */
    uint32_t capacity;
    uint32_t *ends;    /**< for each rank, where its elements end in `order` */
    uint32_t *scratch; /**< of HASH and RANGE: the destination of each element */
    uint32_t scratch_capacity;
};

/** Which window is drawn, and by whom. */
struct draw {
    const struct gathered_window *window;
    uint32_t rank;
    uint32_t ranks;
    uint32_t number; /**< of the window, within the epoch */
    bool is_part;    /**< each rank gets at most one of its elements; `dealt` ranks have one already */
    uint64_t dealt;
    struct range *range; /**< of RANGE */
};

/**
 * ALL, BALANCE: lowers the counts of the ranks' windows until their sum is a multiple of ranks, so that all ranks
 * receive the same number; or if some elements are dealt already, until one remains for each of the others. What a rank
 * leaves out comes first in its next window. A smaller sum stays.
 */
void exchange_policy_level(const struct exchange_settings *settings, uint64_t *counts, uint32_t ranks, uint64_t dealt);

/** Before the ranks agree: everything that can fail. SUPPLY_OK, or _ARGUMENT, _MEMORY. The text does not name the pair.
 */
supply_status_t exchange_policy_prepare(struct destinations *destinations, const struct exchange_settings *settings,
                                        const struct columns *columns, const struct draw *draw,
                                        struct failure *failure);

/** After they agree: draws. counts: the elements of each rank's window. */
void exchange_policy_draw(struct destinations *destinations, const struct exchange_settings *settings,
                          const struct draw *draw, const uint64_t *counts);

void exchange_destinations_free(struct destinations *destinations);

/** The parts of the policies. With a key, they store the destination of each element in destinations->scratch. */
void exchange_draw_deal(struct destinations *destinations, const struct exchange_settings *settings,
                        const struct draw *draw, const uint64_t *counts);

supply_status_t exchange_prepare_hash(struct destinations *destinations, const struct exchange_settings *settings,
                                      const struct columns *columns, const struct draw *draw, struct failure *failure);

/** Index of the key's column. SUPPLY_OK, or _ARGUMENT: it is missing or nullable. purpose: "hash" or "sort". */
supply_status_t exchange_find_key(const struct exchange_settings *settings, const struct columns *columns,
                                  const char *purpose, uint32_t *index, struct failure *failure);

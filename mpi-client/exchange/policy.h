/** The destination of each element of a window, and the order in which a rank sends them. */
#ifndef SUPPLY_EXCHANGE_POLICY_H
#define SUPPLY_EXCHANGE_POLICY_H

#include "range.h"
#include "settings.h"
#include "window.h"

/** The elements of a window in the order of their destinations. */
struct destinations {
    uint32_t *order; /**< indices of elements */
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
    uint32_t number;     /**< of the window, within the epoch */
    struct range *range; /**< of RANGE */
};

/**
 * ALL, BALANCE: lowers the counts of the ranks' windows until their sum is a multiple of ranks, so that all ranks
 * receive the same number. What a rank leaves out comes first in its next window. A sum below ranks stays: a stream has
 * ended for some ranks, and the epoch for the others.
 */
void exchange_policy_level(const struct exchange_settings *settings, uint64_t *counts, uint32_t ranks);

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
supply_status_t exchange_prepare_range(const struct exchange_settings *settings, const struct columns *columns,
                                       struct range *range, struct failure *failure);
void exchange_draw_range(struct destinations *destinations, const struct draw *draw);

/** Index of the key's column. SUPPLY_OK, or _ARGUMENT: it is missing or nullable. purpose: "hash" or "sort". */
supply_status_t exchange_find_key(const struct exchange_settings *settings, const struct columns *columns,
                                  const char *purpose, uint32_t *index, struct failure *failure);

/** Groups the elements by their destination in destinations->scratch, each group in the order of the window. */
void exchange_group(struct destinations *destinations, const struct draw *draw);

#endif

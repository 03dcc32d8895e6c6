/** Positions of an exchange: how ranks that have consumed different windows continue together. */
#ifndef SUPPLY_EXCHANGE_RESUME_H
#define SUPPLY_EXCHANGE_RESUME_H

#include "agree.h"
#include "window.h"

struct resume {
    struct position start; /**< at which the program opened the pair */
    uint32_t first;        /**< the window with which all ranks continue */
    uint32_t next;         /**< state of the policy there, of the lowest rank whose position begins there */
};

/** What this rank tells the others at the opening. */
void exchange_resume_state(const struct resume *resume, struct rank_state *state);

/** Finds the common window from the states of all ranks. SUPPLY_OK, or _ARGUMENT: the same on all ranks. */
supply_status_t exchange_resume_agree(struct resume *resume, const struct rank_state *all, uint32_t ranks,
                                      struct failure *failure);

/** How many of the elements that this rank receives in that window the program has consumed in an earlier run. */
uint64_t exchange_resume_consumed(const struct resume *resume, uint32_t epoch, uint32_t window);

#endif

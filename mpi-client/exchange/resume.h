/** Positions of an exchange: all ranks continue with the same window, and drop what they have consumed of it. */
#ifndef SUPPLY_EXCHANGE_RESUME_H
#define SUPPLY_EXCHANGE_RESUME_H

#include "agree.h"
#include "window.h"

struct resume {
    struct position start; /**< at which the program opened the pair */
};

/** What this rank tells the others at the opening. They fail if their windows or epochs differ. */
void exchange_resume_state(const struct resume *resume, struct rank_state *state);

/** How many of the elements that this rank receives in that window the program has consumed in an earlier run. */
uint64_t exchange_resume_consumed(const struct resume *resume, uint32_t epoch, uint32_t window);

#endif

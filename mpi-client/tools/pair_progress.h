/** What two looks at a pair tell beyond one: how fast it is, and how long somebody has been waiting. */
#ifndef PAIR_PROGRESS_H
#define PAIR_PROGRESS_H

#include "pair_look.h"

struct pair_progress {
    struct pair_look look;
    int64_t
        changed_after; /**< nothing has been published or released since: at the earliest from then on; 0: not known */
    double elements_per_second; /**< published between the two looks; -1: not known */
    double bytes_per_second;    /**< of their blocks; -1: not known */
    double waiting_seconds;     /**< how long who waits has been waiting, at most; -1: nobody waits, or not known */
};

/** Looks at the pair. before: of an earlier look at it; NULL: there was none. */
void pair_progress(struct pair_progress *progress, const struct pair_files *files, const struct pair_progress *before);

#endif

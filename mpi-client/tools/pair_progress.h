/** What two snapshots of a pair show: its rates, and how long one side has been waiting. */
#ifndef PAIR_PROGRESS_H
#define PAIR_PROGRESS_H

#include "pair_snapshot.h"

struct pair_progress {
    struct pair_snapshot snapshot;
    int64_t changed_after;      /**< time of the last snapshot before the last change seen; 0: not known */
    double elements_per_second; /**< published between the two snapshots; -1: not known */
    double bytes_per_second;    /**< of their blocks, values in place included; -1: not known */
    double waiting_seconds;     /**< upper bound; -1: nobody waits, or not known */
};

/** Takes a snapshot of the pair, and compares it with an earlier one. before may be NULL. */
void pair_progress(struct pair_progress *progress, const struct pair_files *files, const struct pair_progress *before);

#endif

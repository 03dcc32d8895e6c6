/** Picks centers from weighted candidates. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include "workspace.h"

struct candidates {
    uint64_t count;
    uint64_t columns;
    const double *values;  /**< count × columns */
    const double *weights; /**< rows that are nearest to each */
};

/**
 * Picks k of them by greedy k-means++ (Arthur and Vassilvitskii, SODA 2007): of several that are drawn, the one that
 * leaves the least cost; the best of several such starts. squares: count × count, which it uses. nearest, trial: count.
 * picked: k numbers. Only on the rank that calls it.
 */
struct candidates_work {
    double *squares;
    double *nearest;
    double *trial;
    double *best;
};
void candidates_pick(const struct candidates *candidates, const struct candidates_work *work, uint64_t k, uint64_t seed,
                     uint64_t *picked);

#endif

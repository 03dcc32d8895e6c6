#include "candidates.h"

#include <math.h>
#include <string.h>

#include "nearest_center.h"
#include "random_numbers.h"

#define STARTS 8
/* Streams of random numbers that others have. */
#define STREAM_FIRST 100

static void measure(const struct candidates *candidates, double *squares) {
    const uint64_t count = candidates->count;
    const uint64_t columns = candidates->columns;
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j <= i; j++)
            squares[i * count + j] = squares[j * count + i] =
                squared_distance(candidates->values + i * columns, candidates->values + j * columns, columns);
}

static double cost_of(const struct candidates *candidates, const double *nearest) {
    double cost = 0;
    for (uint64_t i = 0; i < candidates->count; i++) cost += candidates->weights[i] * nearest[i];
    return cost;
}

/* One at random, as likely as its weight times its distance. None is left with a distance: the first of the others. */
static uint64_t draw(const struct candidates *candidates, const double *nearest, double random) {
    double left = random * cost_of(candidates, nearest);
    uint64_t last = 0;
    for (uint64_t i = 0; i < candidates->count; i++) {
        const double share = candidates->weights[i] * nearest[i];
        if (share <= 0) continue;
        last = i;
        if (left < share) return i;
        left -= share;
    }
    return last;
}

/* The distances of all to the nearest picked one, if `next` is picked, too. */
static void reduce(const struct candidates *candidates, const double *squares, uint64_t next, const double *nearest,
                   double *reduced) {
    for (uint64_t i = 0; i < candidates->count; i++)
        reduced[i] = fmin(nearest[i], squares[next * candidates->count + i]);
}

static uint64_t pick_next(const struct candidates *candidates, const struct candidates_work *work, uint64_t stream,
                          uint64_t number, uint64_t trials, uint64_t seed) {
    uint64_t best = 0;
    double least = INFINITY;
    for (uint64_t trial = 0; trial < trials; trial++) {
        const uint64_t one = draw(candidates, work->nearest, random_uniform(seed, stream, number * trials + trial));
        reduce(candidates, work->squares, one, work->nearest, work->trial);
        const double cost = cost_of(candidates, work->trial);
        if (cost >= least) continue;
        least = cost;
        best = one;
    }
    return best;
}

static double pick_once(const struct candidates *candidates, const struct candidates_work *work, uint64_t k,
                        uint64_t start, uint64_t seed, uint64_t *picked) {
    const uint64_t trials = 2 + (uint64_t)log((double)k);
    for (uint64_t i = 0; i < candidates->count; i++) work->nearest[i] = 1;
    for (uint64_t number = 0; number < k; number++) {
        const uint64_t next = pick_next(candidates, work, STREAM_FIRST + start, number, number == 0 ? 1 : trials, seed);
        if (number == 0)
            for (uint64_t i = 0; i < candidates->count; i++) work->nearest[i] = INFINITY;
        reduce(candidates, work->squares, next, work->nearest, work->nearest);
        picked[number] = next;
    }
    return cost_of(candidates, work->nearest);
}

void candidates_pick(const struct candidates *candidates, const struct candidates_work *work, uint64_t k, uint64_t seed,
                     uint64_t *picked) {
    double least = INFINITY;
    uint64_t *one = (uint64_t *)work->best;
    measure(candidates, work->squares);
    for (uint64_t start = 0; start < STARTS; start++) {
        const double cost = pick_once(candidates, work, k, start, seed, one);
        if (start > 0 && !(cost < least)) continue;
        least = cost;
        memcpy(picked, one, k * sizeof *picked);
    }
}

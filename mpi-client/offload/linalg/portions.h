/** The rows of a dense matrix in portions that fit the cache, less the means of the columns if there are some. */
#ifndef PORTIONS_H
#define PORTIONS_H

#include "workspace.h"

/* Stays in the cache of a core. */
#define CACHED_PORTION ((uint64_t)1 << 20)

struct portions {
    const supply_matrix_t *A;
    const double *mean; /**< NULL: nothing is subtracted, and nothing copied */
    double *centred;
    uint64_t size; /**< rows of a portion */
};

/**
 * mean: one value for each column, or NULL. bytes: of a portion; CACHED_PORTION if it is read several times.
 * workspace_check() must follow.
 */
void portions_init(struct portions *portions, struct workspace *workspace, const supply_matrix_t *A, const double *mean,
                   uint64_t bytes);

/** Rows of the portion that starts at local row `first`; 0 after the last one. */
uint64_t portion_rows(const struct portions *portions, uint64_t first);

/** Its values, row after row, until the next call. */
const double *portion_values(const struct portions *portions, uint64_t first);

/** The means of all columns. Collective. */
void column_means(supply_call_t *call, const supply_matrix_t *A, double *mean);

#endif

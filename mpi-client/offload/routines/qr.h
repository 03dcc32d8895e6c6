/** QR factorization of tall matrices whose rows are on many ranks. */
#ifndef SUPPLY_ROUTINES_QR_H
#define SUPPLY_ROUTINES_QR_H

#include "call.h"

/**
 * A = Q R, with a diagonal of R that is not negative. TSQR: each rank factors its rows, then pairs of ranks factor
 * their R's (Demmel, Grigori, Hoemmen, Langou, "Communication-optimal parallel and sequential QR and LU
 * factorizations", SIAM J. Sci. Comput. 34, 2012, section 3). The ranks must have at least `columns` rows in all. rows:
 * A, replaced by Q. R: columns × columns, row after row, on all ranks. Not 0: the call has failed. Collective.
 */
int tsqr(struct workspace *workspace, double *rows, uint64_t local_rows, uint64_t columns, double *R);

/** Each row is replaced by its product with `right` (columns × columns, row after row). Not 0: failed. Collective. */
int multiply_in_place(struct workspace *workspace, double *rows, uint64_t local_rows, uint64_t columns,
                      const double *right);

#endif

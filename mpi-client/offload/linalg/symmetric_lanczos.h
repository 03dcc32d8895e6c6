/** Eigenvalues of large symmetric matrices by SLEPc. */
#ifndef SYMMETRIC_LANCZOS_H
#define SYMMETRIC_LANCZOS_H

#include "row_operator.h"

enum eigenvalues_which { LARGEST, SMALLEST, LARGEST_MAGNITUDE };

struct eigenvalues {
    enum eigenvalues_which which;
    uint64_t k;
    double *values;  /**< k */
    double *vectors; /**< local rows × k; the largest value of each column is positive */
};

/**
 * Eigenvalues of a symmetric matrix by Krylov-Schur, which is Lanczos with thick restarts here (Stewart, SIAM J. Matrix
 * Anal. Appl. 23, 2001): SLEPc's krylovschur. The rows stay in place. Fails if the matrix is not symmetric. Not 0: the
 * call has failed. Collective.
 */
int symmetric_lanczos(struct workspace *workspace, const struct row_operator *op, const struct eigenvalues *wanted);

#endif

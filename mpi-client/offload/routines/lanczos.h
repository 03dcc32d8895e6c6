/**
 * Singular values, and eigenvalues of symmetric matrices, by the Lanczos methods of SLEPc. Without SLEPc
 * (lanczos_missing.c) both functions fail.
 */
#ifndef LANCZOS_H
#define LANCZOS_H

#include "rows.h"
#include "singular_values.h"

/** Whether this library was built with SLEPc. */
bool lanczos_is_available(void);

/**
 * Fills V by Golub-Kahan-Lanczos bidiagonalization with thick restarts (Hernández, Román, Tomás, "A robust and
 * efficient parallel SVD solver based on restarted Lanczos bidiagonalization", ETNA 31, 2008): SLEPc's trlanczos. The
 * rows stay in place. Not 0: the call has failed. Collective.
 */
int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values);

enum eigenvalues_which { LARGEST, SMALLEST, LARGEST_MAGNITUDE };

struct eigenvalues {
    enum eigenvalues_which which;
    uint64_t k;
    double norm;     /**< of A's longest column, at most that of A: errors of eigenvalues near 0 are relative to it */
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

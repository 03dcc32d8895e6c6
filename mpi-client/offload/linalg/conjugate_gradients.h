/** Least squares by conjugate gradients. */
#ifndef CONJUGATE_GRADIENTS_H
#define CONJUGATE_GRADIENTS_H

#include "row_operator.h"

struct conjugate_gradients {
    const struct row_operator *op;
    double l2;
    uint64_t vectors;
    const double *right; /**< columns × vectors */
    double tolerance;    /**< of each vector's residual, relative to its right side */
    int64_t iterations;  /**< at most */
};

/**
 * Solves (AᵀA + l2 I) X = right by conjugate gradients (Hestenes and Stiefel, 1952; Golub and Van Loan, section 11.3),
 * one for each vector, all with one pass over the rows an iteration. X: columns × vectors, 0 each. Computes the
 * residual again at the end. Not 0: the call has failed, also if it did not converge. Collective.
 */
int conjugate_gradients(struct workspace *workspace, const struct conjugate_gradients *problem, double *X);

#endif

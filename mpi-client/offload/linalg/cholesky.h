/** Least squares by the Cholesky factor of AᵀA. */
#ifndef CHOLESKY_H
#define CHOLESKY_H

#include "row_operator.h"

/**
 * Solves least ‖A w − b‖² + l2 ‖w‖², A less its means, by LAPACK's dpotrf of AᵀA + l2 I on rank 0, then corrects w once
 * by the residual of b itself (Björck, "Numerical Methods for Least Squares Problems", 1996, section 2.9.3). right:
 * Aᵀb; b: this rank's rows. w: a value for each column. Not 0: the call has failed, also if AᵀA + l2 I is so near to
 * singular that the correction is large. Collective.
 */
int cholesky(struct workspace *workspace, const struct row_operator *op, double l2, const double *right,
             const double *b, double *w);

#endif

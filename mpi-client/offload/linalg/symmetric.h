/** Eigenvalues of small symmetric matrices. */
#ifndef SYMMETRIC_H
#define SYMMETRIC_H

#include "workspace.h"

/**
 * The `k` largest eigenvalues of a symmetric matrix, descending, and their vectors, as columns, row after row (n × k).
 * Rank 0 computes them by LAPACK's dsyevr, and all ranks get them. matrix: its upper triangle, row after row, is read
 * on rank 0, and overwritten. Collective.
 */
int largest_eigenvalues(struct workspace *workspace, double *matrix, uint64_t n, uint64_t k, double *values,
                        double *vectors);

#endif

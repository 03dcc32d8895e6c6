/** Products of the rows of a dense matrix with themselves. */
#ifndef GRAM_MATRIX_H
#define GRAM_MATRIX_H

#include "workspace.h"

/**
 * The upper triangle of this rank's part of AᵀA, row after row; the rest of `gram` stays as it is. With `mean`, of
 * (A − 1 mean)ᵀ(A − 1 mean): subtracting first keeps the digits that subtracting m mean meanᵀ afterwards would lose.
 * gram: columns × columns, 0 each. The sum over the ranks is the caller's. Not 0: the call has failed. Collective.
 */
int gram_matrix(struct workspace *workspace, const supply_matrix_t *A, const double *mean, double *gram);

/** Copies the upper triangle to the lower one. */
void complete_symmetric(double *matrix, uint64_t columns);

/**
 * AᵀA has a finite diagonal exactly if A's values are finite and not too large. Reads the diagonal of rank 0.
 * Not 0: the call has failed. Collective.
 */
int check_gram(struct workspace *workspace, const char *name, const double *gram, uint64_t columns);

#endif

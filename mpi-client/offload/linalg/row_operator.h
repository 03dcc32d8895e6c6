/** A matrix, less the means of its columns if there are some, as an operator: rows in place, dense or sparse. */
#ifndef ROW_OPERATOR_H
#define ROW_OPERATOR_H

#include "portions.h"

struct row_operator {
    supply_call_t *call;
    const supply_matrix_t *A;
    const double *mean; /**< NULL: A itself */
    struct portions portions;
    double *product; /**< A X of a portion */
};

/** vectors_max: the most columns of an X. workspace_check() must follow. */
void row_operator_init(struct row_operator *op, struct workspace *workspace, const supply_matrix_t *A,
                       const double *mean, uint64_t vectors_max);

/** Y = (A − 1 mean) X for this rank's rows. X: columns × vectors, Y: local rows × vectors, row after row. */
void row_operator_apply(const struct row_operator *op, const double *X, uint64_t vectors, double *Y);

/** X = (A − 1 mean)ᵀ Y. Only this rank's part of the sum. */
void row_operator_apply_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X);

/** X = (A − 1 mean)ᵀ(A − 1 mean) W, alike on all ranks. Dense rows are read from memory once. Collective. */
void row_operator_apply_gram(const struct row_operator *op, const double *W, uint64_t vectors, double *X);

#endif

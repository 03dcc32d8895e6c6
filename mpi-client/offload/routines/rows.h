/**
 * The rows of a matrix that this rank has, as routines read them: in portions that fit the cache, as an operator, as
 * products with themselves, and with their nearest centers. The rows stay where Spark put them.
 */
#pragma once

#include "call.h"

/* Stays in the cache of a core. */
#define CACHED_PORTION ((uint64_t)1 << 20)

struct portions {
    const supply_matrix_t *A;
    const double *mean;  /**< NULL: nothing is subtracted, */
    const double *scale; /**< NULL: and nothing multiplied; if both are, nothing is copied */
    double *copied;
    uint64_t size; /**< rows of a portion */
};

/**
 * mean, scale: one value for each column, or NULL. bytes: of a portion; CACHED_PORTION if it is read several times.
 * workspace_check() must follow.
 */
void portions_init(struct portions *portions, struct workspace *workspace, const supply_matrix_t *A, const double *mean,
                   const double *scale, uint64_t bytes);

/**
 * The means of all columns, by a second pass right to about their last digit, so that a constant column less its mean
 * is 0. Not 0: the call has failed, also if a value is not finite. Collective.
 */
int column_means(struct workspace *workspace, const char *name, const supply_matrix_t *A, double *mean);

/**
 * The norms of the columns of A − 1 meanᵀ, also of values whose squares leave the range of numbers. mean: NULL for A
 * itself. Not 0: the call has failed, also if a value is not finite. Collective.
 */
int column_norms(struct workspace *workspace, const char *name, const supply_matrix_t *A, const double *mean,
                 double *norms);

/** The squares of A's values are in the range of numbers. Not 0: the call has failed. Collective. */
int check_squares(struct workspace *workspace, const char *name, const supply_matrix_t *A);

/** The power of two that brings a norm into 1 … 2; 1 for 0. */
double scale_of(double norm);

/**
 * A power of two by which products of the values of A − 1 meanᵀ stay in the range of numbers: `factor`, and `scale`, it
 * for each column. Of usual values 1, and NULL. norm: of the longest column, scaled. Otherwise as column_norms().
 */
int common_scale(struct workspace *workspace, const char *name, const supply_matrix_t *A, const double *mean,
                 const double **scale, double *factor, double *norm);

/* A matrix, less the means of its columns if there are some, as an operator: rows in place, dense or sparse. */

struct row_operator {
    supply_call_t *call;
    const supply_matrix_t *A;
    const double *mean;  /**< NULL: A itself */
    const double *scale; /**< of each column: the operator is (A − 1 meanᵀ) diag(scale); NULL: 1 */
    struct portions portions;
    double *product; /**< A X of a portion */
    double *scaled;  /**< diag(scale) X */
};

/** vectors_max: the most columns of an X. workspace_check() must follow. */
void row_operator_init(struct row_operator *op, struct workspace *workspace, const supply_matrix_t *A,
                       const double *mean, const double *scale, uint64_t vectors_max);

/** Y = operator X for this rank's rows. X: columns × vectors, Y: local rows × vectors, row after row. */
void row_operator_apply(const struct row_operator *op, const double *X, uint64_t vectors, double *Y);

/** X = operatorᵀ Y. Only this rank's part of the sum. */
void row_operator_apply_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X);

/** X = operatorᵀ operator W, alike on all ranks. Dense rows are read from memory once. Collective. */
void row_operator_apply_gram(const struct row_operator *op, const double *W, uint64_t vectors, double *X);

/* The nearest center of each row. */

struct nearest_center {
    const struct portions
        *portions;     /**< less the means: most distances then differ by more than their products' errors */
    double *products;  /**< rows of a portion × centers */
    double *shifted;   /**< the centers, less the means, */
    double *squares;   /**< and of their norms */
    double *labels;    /**< of a portion: for each row the number of its nearest center, */
    double *distances; /**< and the square of the distance to it */
};

/** centers_max: the most centers of a call. workspace_check() must follow. */
void nearest_center_init(struct nearest_center *nearest, struct workspace *workspace, const struct portions *portions,
                         uint64_t centers_max);

/**
 * Finds labels and distances of the portion that starts at local row `first`; returns its rows, 0 after the last one.
 * One dgemm gives ‖c‖² − 2 aᵀc of all centers; those that its rounding leaves in question are compared by ‖a − c‖². Of
 * equally near ones the first. centers: count × columns.
 */
uint64_t nearest_center_find(const struct nearest_center *nearest, uint64_t first, const double *centers,
                             uint64_t count);

double squared_distance(const double *left, const double *right, uint64_t count);

/* Products of the rows of a dense matrix with themselves. */

/**
 * The upper triangle of this rank's part of AᵀA, row after row; the rest of `gram` stays as it is. With `mean`, of
 * (A − 1 mean)ᵀ(A − 1 mean): subtracting first keeps the digits that subtracting m mean meanᵀ afterwards would lose.
 * scale: of each column, or NULL. gram: columns × columns, 0 each. The sum over the ranks is the caller's. Not 0: the
 * call has failed. Collective.
 */
int gram_matrix(struct workspace *workspace, const supply_matrix_t *A, const double *mean, const double *scale,
                double *gram);

/** Copies the upper triangle to the lower one. */
void complete_symmetric(double *matrix, uint64_t columns);

/* QR factorization of tall matrices whose rows are on many ranks. */

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

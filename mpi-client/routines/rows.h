/**
 * The rows of a matrix that this rank has, as routines read them: in portions that fit the cache, as an operator, as
 * products with themselves, and with their nearest centers. The rows stay where Spark put them.
 */
#ifndef SUPPLY_ROUTINES_ROWS_H
#define SUPPLY_ROUTINES_ROWS_H

#include "call.h"

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

/* A matrix, less the means of its columns if there are some, as an operator: rows in place, dense or sparse. */

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

/* The nearest center of each row. */

struct nearest_center {
    const struct portions *portions; /**< less the means: distances by products then keep their digits */
    double *products;                /**< rows of a portion × centers */
    double *squares;                 /**< of the norms of the centers */
};

/** centers_max: the most centers of a call. workspace_check() must follow. */
void nearest_center_init(struct nearest_center *nearest, struct workspace *workspace, const struct portions *portions,
                         uint64_t centers_max);

/** Sets the centers of the next calls: count × columns, less the means. */
void nearest_center_prepare(struct nearest_center *nearest, const double *centers, uint64_t count);

/**
 * For each row of a portion the number of its nearest center: the least ‖c‖² − 2 aᵀc, all by one dgemm. Of equally near
 * ones the first. labels: one for each row.
 */
void nearest_center_find(const struct nearest_center *nearest, const double *values, uint64_t rows,
                         const double *centers, uint64_t count, double *labels);

double squared_distance(const double *left, const double *right, uint64_t count);

/* Products of the rows of a dense matrix with themselves. */

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

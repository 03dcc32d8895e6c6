/**
 * The routines of libsupply_linalg. A is a matrix with m rows and n columns. Vectors are arrays with one column. A
 * matrix may be dense or sparse where it says so; otherwise it must be dense. All fail if a shape does not match, the
 * call is cancelled, or a rank has no memory; all but multiply and transpose_multiply also if a value, or the result,
 * is not finite.
 */
#pragma once

#include "supply_routine.h"

/** AᵀA → `gram`: array, n × n. By BLAS's dsyrk on each rank's rows. */
int routine_gram(supply_call_t *call);

/**
 * The means of the columns of A (dense or sparse), and their variances of m − 1 degrees of freedom → `mean`,
 * `variance`: arrays, n × 1. m must be 2 or more.
 */
int routine_column_statistics(supply_call_t *call);

/**
 * A (dense or sparse), `k` from 1 to min(m, n), `method` → the `k` largest singular values and their vectors: `U`:
 * rows, m × k; `S`: array, k × 1, descending; `V`: array, n × k. Each column of V has a positive largest value, so that
 * the signs do not depend on the number of ranks. Methods: lanczos.h; a sparse matrix takes `lanczos`.
 */
int routine_truncated_svd(supply_call_t *call);

/**
 * The principal components of A (dense or sparse), by the singular values of A less the means of its columns.
 * `components`: array, n × k, one component a column; `variance`: array, k × 1, of m − 1 degrees of freedom; `mean`:
 * array, n × 1; `scores`: rows, m × k, (A − 1 meanᵀ) components. As truncated_svd otherwise. m must be 2 or more.
 */
int routine_pca(supply_call_t *call);

/**
 * A B → `C`: rows like A, m × q. B: n × q, a small array or rows; a part of B's rows is on each rank at a time, and
 * the whole B nowhere (the one-dimensional case of SUMMA, van de Geijn and Watts, 1997). Both may be large. A may be
 * sparse.
 */
int routine_multiply(supply_call_t *call);

/** AᵀB → `C`: array, n × q. B: m × q, with the same rows on the same ranks as A. A may be sparse. */
int routine_transpose_multiply(supply_call_t *call);

/**
 * For each column b of B the coefficients w, and the intercept c, of least ‖A w + c 1 − b‖² + `l2` ‖w‖² (Hoerl and
 * Kennard, 1970). The parameter `b` is B: rows like A, m × q. `intercept`: 0 or 1; 0: c is 0. → `coefficients`: array,
 * n × q; `intercept`: array, q × 1. `method`: `cholesky` of AᵀA (LAPACK's dpotrf); `cg`, conjugate gradients
 * (least_squares.c), to `tolerance` in at most `iterations`, with one pass over the rows an iteration for all columns;
 * `auto`: cholesky for dense matrices with at most 4,000 columns. A may be sparse, for cg. Both scale each column to
 * the same norm. Fails if the residual of the normal equations is large, and cholesky if AᵀA + l2 I is singular, also
 * because a column is constant beside the intercept; cg then gives, of all solutions, the one with the least norm of
 * coefficients of scaled columns.
 */
int routine_ridge(supply_call_t *call);

/**
 * `k` clusters by Lloyd's algorithm (1982), from centers by k-means|| (kmeans.c) and `seed`, until no center
 * moves farther than `tolerance`, or `iterations` are done. → `centers`: array, k × n; `labels`: rows, m × 1, the
 * number of the nearest center from 0; `cost`: array, 1 × 1, the sum of the squared distances to it. A cluster that
 * loses its rows keeps its center. The result does not depend on the number of ranks, but for rounding. Labels are of
 * the nearest center also beside an outlier. Fails if squares of values leave the range of numbers.
 */
int routine_kmeans(supply_call_t *call);

/**
 * A = Q R by TSQR (rows.h) → `Q`: rows, m × n, orthonormal columns; `R`: array, n × n, upper triangular, with a
 * diagonal that is not negative. m must be n or more.
 */
int routine_qr(supply_call_t *call);

/**
 * Random features of the Gaussian kernel exp(−‖x − y‖² / (2 `bandwidth`²)): sqrt(2 / `features`) cos(A Ω + 1 bᵀ), Ω
 * normal and b uniform (Rahimi and Recht, NIPS 2007) → `Z`: rows, m × features. A may be sparse. `seed` alone decides Ω
 * and b, so that two calls map two matrices alike.
 */
int routine_random_features(supply_call_t *call);

/**
 * Applies AᵀA to v `iterations` times, and scales the vector to norm 1 in between: the power method. v: n × 1, a small
 * array or rows. → `vector`: array, n × 1, not scaled. A may be sparse.
 */
int routine_gram_vector(supply_call_t *call);

/**
 * `k` eigenvalues of a symmetric A (dense or sparse; lanczos.h), at the end that `which` says: `largest`,
 * `smallest` or `largest_magnitude`, in that order, a multiple one as often as it is one. Those in the midst of others
 * converge slowly. Errors are 1e-10 of the eigenvalue, or 1e-13 of A's norm. → `vectors`: rows, n × k; `values`: array,
 * k × 1. Needs SLEPc.
 */
int routine_eigenvalues(supply_call_t *call);

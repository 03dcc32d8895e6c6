/**
 * Singular values, and eigenvalues of symmetric matrices, by the Lanczos methods of SLEPc. Without SLEPc
 * both functions fail.
 */
#pragma once

#include "rows.h"
#include "call.h"

/* The largest singular values of a matrix whose rows are on many ranks. */

/** What the parameter `method` may be, in the order of enum singular_method. */
extern const char *const singular_methods[];
enum singular_method { METHOD_AUTO, METHOD_GRAM, METHOD_LANCZOS };

/** The `k` largest of A − 1 meanᵀ, or of A if mean is NULL. Memory for all three is the caller's. */
struct singular_values {
    const supply_matrix_t *A;
    const double *mean;
    uint64_t k;
    double *U; /**< local rows × k, row after row */
    double *S; /**< k, descending */
    double *V; /**< columns × k, row after row; the sign of each column makes its largest value positive */
};

/**
 * METHOD_GRAM: eigenvectors of AᵀA, then a Rayleigh-Ritz step with A itself (Golub and Van Loan, "Matrix Computations",
 * 4th edition, section 8.6), so that U is orthonormal to the last digits. Singular values below 1e-8 of the largest one
 * are not precise. METHOD_LANCZOS: SLEPc. METHOD_AUTO: `lanczos` for a sparse matrix, and for more than 3,000 columns
 * if k is at most a hundredth of them. Checks the residual AᵀU − V S. Not 0: the call has failed. Collective.
 */
int singular_values(struct workspace *workspace, const char *name, enum singular_method method,
                    const struct singular_values *values);

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

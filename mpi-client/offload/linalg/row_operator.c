#include "row_operator.h"

#include <cblas.h>
#include <string.h>

#include "ranks_of_call.h"

void row_operator_init(struct row_operator *op, struct workspace *workspace, const supply_matrix_t *A,
                       const double *mean, uint64_t vectors_max) {
    *op = (struct row_operator){.call = workspace->call, .A = A, .mean = mean};
    portions_init(&op->portions, workspace, A, A->row_offsets == NULL ? mean : NULL, CACHED_PORTION);
    op->product = workspace_add(workspace, op->portions.size * vectors_max);
}

/* Y = rows X */
static void multiply_dense(const double *rows, uint64_t count, uint64_t columns, const double *X, uint64_t vectors,
                           double *Y) {
    if (count == 0) return;
    if (vectors == 1)
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)count, (int)columns, 1, rows, (int)columns, X, 1, 0, Y, 1);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, (int)vectors, (int)columns, 1, rows,
                    (int)columns, X, (int)vectors, 0, Y, (int)vectors);
}

/* X += rowsᵀ Y */
static void add_transpose_dense(const double *rows, uint64_t count, uint64_t columns, const double *Y, uint64_t vectors,
                                double *X) {
    if (count == 0) return;
    if (vectors == 1)
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)count, (int)columns, 1, rows, (int)columns, Y, 1, 1, X, 1);
    else
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)columns, (int)vectors, (int)count, 1, rows,
                    (int)columns, Y, (int)vectors, 1, X, (int)vectors);
}

static void multiply_sparse(const supply_matrix_t *A, const double *X, uint64_t vectors, double *Y) {
    for (uint64_t i = 0; i < A->local_rows; i++) {
        double *row = Y + i * vectors;
        for (uint64_t v = 0; v < vectors; v++) row[v] = 0;
        for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++)
            for (uint64_t v = 0; v < vectors; v++) row[v] += A->entries[at] * X[A->column_indices[at] * vectors + v];
    }
}

static void add_transpose_sparse(const supply_matrix_t *A, const double *Y, uint64_t vectors, double *X) {
    for (uint64_t i = 0; i < A->local_rows; i++)
        for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++)
            for (uint64_t v = 0; v < vectors; v++)
                X[A->column_indices[at] * vectors + v] += A->entries[at] * Y[i * vectors + v];
}

/* Y −= 1 (meanᵀ X) */
static void subtract_mean(const struct row_operator *op, const double *X, uint64_t vectors, double *Y) {
    for (uint64_t v = 0; v < vectors; v++) {
        double shift = 0;
        for (uint64_t j = 0; j < op->A->columns; j++) shift += op->mean[j] * X[j * vectors + v];
        for (uint64_t i = 0; i < op->A->local_rows; i++) Y[i * vectors + v] -= shift;
    }
}

/* X −= mean (1ᵀ Y) */
static void subtract_mean_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X) {
    for (uint64_t v = 0; v < vectors; v++) {
        double sum = 0;
        for (uint64_t i = 0; i < op->A->local_rows; i++) sum += Y[i * vectors + v];
        for (uint64_t j = 0; j < op->A->columns; j++) X[j * vectors + v] -= op->mean[j] * sum;
    }
}

void row_operator_apply(const struct row_operator *op, const double *X, uint64_t vectors, double *Y) {
    const supply_matrix_t *A = op->A;
    if (A->row_offsets != NULL)
        multiply_sparse(A, X, vectors, Y);
    else
        multiply_dense(A->values, A->local_rows, A->columns, X, vectors, Y);
    if (op->mean != NULL) subtract_mean(op, X, vectors, Y);
}

void row_operator_apply_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X) {
    const supply_matrix_t *A = op->A;
    memset(X, 0, A->columns * vectors * sizeof *X);
    if (A->row_offsets != NULL)
        add_transpose_sparse(A, Y, vectors, X);
    else
        add_transpose_dense(A->values, A->local_rows, A->columns, Y, vectors, X);
    if (op->mean != NULL) subtract_mean_transpose(op, Y, vectors, X);
}

static void add_gram_dense(const struct row_operator *op, const double *W, uint64_t vectors, double *X) {
    const uint64_t columns = op->A->columns;
    for (uint64_t first = 0, rows; (rows = portion_rows(&op->portions, first)) > 0; first += rows) {
        const double *values = portion_values(&op->portions, first);
        multiply_dense(values, rows, columns, W, vectors, op->product);
        add_transpose_dense(values, rows, columns, op->product, vectors, X);
    }
}

/* With a mean: A − 1 meanᵀ is as dense as A is not, so both products are corrected instead. */
static void add_gram_sparse(const struct row_operator *op, const double *W, uint64_t vectors, double *X) {
    double *shift = op->product + vectors;
    double *sums = op->product + 2 * vectors;
    memset(shift, 0, 2 * vectors * sizeof *shift);
    for (uint64_t j = 0; op->mean != NULL && j < op->A->columns; j++)
        for (uint64_t v = 0; v < vectors; v++) shift[v] += op->mean[j] * W[j * vectors + v];
    supply_matrix_t row = *op->A;
    row.local_rows = 1;
    for (uint64_t i = 0; i < op->A->local_rows; i++, row.row_offsets++) {
        multiply_sparse(&row, W, vectors, op->product);
        for (uint64_t v = 0; v < vectors; v++) sums[v] += op->product[v] -= shift[v];
        add_transpose_sparse(&row, op->product, vectors, X);
    }
    for (uint64_t j = 0; op->mean != NULL && j < op->A->columns; j++)
        for (uint64_t v = 0; v < vectors; v++) X[j * vectors + v] -= op->mean[j] * sums[v];
}

void row_operator_apply_gram(const struct row_operator *op, const double *W, uint64_t vectors, double *X) {
    memset(X, 0, op->A->columns * vectors * sizeof *X);
    if (op->A->row_offsets != NULL)
        add_gram_sparse(op, W, vectors, X);
    else
        add_gram_dense(op, W, vectors, X);
    sum_over_ranks(op->call, X, op->A->columns * vectors);
}

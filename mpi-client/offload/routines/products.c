/** Routines that pass over the rows and add up: products of matrices, and statistics of columns (routines.h). */
#include <cblas.h>
#include <inttypes.h>
#include <string.h>

#include "call.h"
#include "routines.h"
#include "rows.h"

static int run_gram(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_dense(call, "A") != 0) return 1;
    double *gram = supply_call_array(call, "gram", A->columns, A->columns);
    double *diagonal = workspace_add(workspace, A->columns);
    if (gram == NULL || gram_matrix(workspace, A, NULL, NULL, gram) != 0) return 1;
    sum_over_ranks(call, gram, A->columns * A->columns);
    complete_symmetric(gram, A->columns);
    /* It is finite exactly if A's values are, and not too large. */
    for (uint64_t j = 0; j < A->columns; j++) diagonal[j] = gram[j * (A->columns + 1)];
    return check_finite(call, "A", diagonal, A->columns);
}

ROUTINE(gram)

/* A, dense or sparse, can be multiplied by a dense matrix, of `columns` columns or, if that is 0, of any. Collective.
 */
static int check_factors(supply_call_t *call, const char *right, uint64_t columns) {
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *B = supply_call_matrix(call, right);
    if (check_matrix(call, "A") || check_not_sparse(call, right)) return 1;
    if (A->columns == B->rows && B->columns > 0 && (columns == 0 || B->columns == columns)) return 0;
    return supply_call_fail(
        call, "A is %" PRIu64 " × %" PRIu64 ", and %s is %" PRIu64 " × %" PRIu64 ": %s must have %s", A->rows,
        A->columns, right, B->rows, B->columns, right,
        columns == 0 ? "a row for each column of A" : "one column, with a value for each column of A");
}

/* All rows of a matrix with one column, on all ranks. */
static void products_gather(supply_call_t *call, const char *name, double *whole) {
    const supply_matrix_t *v = supply_call_matrix(call, name);
    if (is_small_array(call, name)) {
        memcpy(whole, v->values, v->rows * sizeof *whole);
        return;
    }
    memset(whole, 0, v->rows * sizeof *whole);
    if (v->local_rows > 0) memcpy(whole + v->first_row, v->values, v->local_rows * sizeof *whole);
    sum_over_ranks(call, whole, v->rows);
}

static int run_gram_vector(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_factors(call, "v", 1) || check_count(call, "iterations", INT64_MAX, "of 64 bits")) return 1;
    const int64_t iterations = supply_call_integer(call, "iterations");
    double *result = supply_call_array(call, "vector", A->columns, 1);
    double *vector = workspace_add(workspace, A->columns);
    struct row_operator op;
    const double *scale;
    double factor;
    double norm;
    if (result == NULL || common_scale(workspace, "A", A, NULL, &scale, &factor, &norm) != 0) return 1;
    row_operator_init(&op, workspace, A, NULL, scale, 1);
    if (workspace_check(workspace) != 0) return 1;
    products_gather(call, "v", vector);
    for (int64_t i = 0; i < iterations; i++) {
        const double length = i == 0 ? 1 : cblas_dnrm2((int)A->columns, result, 1);
        for (uint64_t j = 0; i > 0 && length > 0 && j < A->columns; j++) vector[j] = result[j] / length;
        row_operator_apply_gram(&op, vector, 1, result);
        if (report_progress(call, (uint64_t)i, (uint64_t)iterations) != 0) return 1;
    }
    for (uint64_t j = 0; j < A->columns; j++) result[j] = result[j] / factor / factor;
    return check_all_finite(call, "A or v", result, A->columns);
}

ROUTINE(gram_vector)

/* The part of B that all ranks have at a time. */
#define PART_BYTES ((uint64_t)16 << 20)

struct product {
    supply_call_t *call;
    const supply_matrix_t *A;
    const supply_matrix_t *B;
    double *C;
    double *part; /**< some rows of B */
    uint64_t part_rows;
};

/* C += A[:, first … first + rows − 1] part */
static void add_part(const struct product *product, uint64_t first, uint64_t rows, const double *part) {
    const supply_matrix_t *A = product->A;
    const uint64_t q = product->B->columns;
    if (A->row_offsets == NULL && A->local_rows > 0)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)A->local_rows, (int)q, (int)rows, 1,
                    A->values + first, (int)A->columns, part, (int)q, 1, product->C, (int)q);
    for (uint64_t i = 0; A->row_offsets != NULL && i < A->local_rows; i++)
        for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++) {
            const uint64_t row = A->column_indices[at] - first;
            /* One that is in front of `first` is a large number. */
            if (A->column_indices[at] < first || row >= rows) continue;
            for (uint64_t j = 0; j < q; j++) product->C[i * q + j] += A->entries[at] * part[row * q + j];
        }
}

/* Each part of the rows of one rank goes to all others. */
static int add_rows_of(const struct product *product, int owner, uint64_t first, uint64_t count) {
    const supply_matrix_t *B = product->B;
    const uint64_t q = B->columns;
    int rank;
    MPI_Comm_rank(supply_call_comm(product->call), &rank);
    for (uint64_t done = 0; done < count; done += product->part_rows) {
        const uint64_t rows = count - done < product->part_rows ? count - done : product->part_rows;
        double *part = rank == owner ? B->values + done * q : product->part;
        MPI_Bcast(part, (int)(rows * q), MPI_DOUBLE, owner, supply_call_comm(product->call));
        add_part(product, first + done, rows, part);
        if (report_progress(product->call, first + done, B->rows) != 0) return 1;
    }
    return 0;
}

static int multiply_rows(struct product *product, struct workspace *workspace) {
    int ranks;
    MPI_Comm_size(supply_call_comm(product->call), &ranks);
    product->part_rows = PART_BYTES / (product->B->columns * sizeof(double)) + 1;
    product->part = workspace_add(workspace, product->part_rows * product->B->columns);
    uint64_t *counts = (uint64_t *)workspace_add(workspace, (size_t)ranks);
    if (workspace_check(workspace) != 0) return 1;
    MPI_Allgather(&product->B->local_rows, 1, MPI_UINT64_T, counts, 1, MPI_UINT64_T, supply_call_comm(product->call));
    uint64_t first = 0;
    for (int owner = 0; owner < ranks; first += counts[owner++])
        if (add_rows_of(product, owner, first, counts[owner]) != 0) return 1;
    return 0;
}

static int run_multiply(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    if (check_factors(call, "B", 0) != 0) return 1;
    struct product product = {.call = call, .A = supply_call_matrix(call, "A"), .B = supply_call_matrix(call, "B")};
    const supply_matrix_t *C = supply_call_rows(call, "C", product.A, product.B->columns);
    if (C == NULL) return 1;
    product.C = C->values;
    if (!is_small_array(call, "B")) return multiply_rows(&product, workspace);
    add_part(&product, 0, product.B->rows, product.B->values);
    return 0;
}

ROUTINE(multiply)

static int run_transpose_multiply(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *B = supply_call_matrix(call, "B");
    struct row_operator op;
    if (check_matrix(call, "A") || check_dense(call, "B") || check_same_rows(call, "A", "B")) return 1;
    row_operator_init(&op, workspace, A, NULL, NULL, 0);
    double *C = supply_call_array(call, "C", A->columns, B->columns);
    if (C == NULL || workspace_check(workspace) != 0) return 1;
    row_operator_apply_transpose(&op, B->values, B->columns, C);
    sum_over_ranks(call, C, A->columns * B->columns);
    return 0;
}

ROUTINE(transpose_multiply)

static int run_column_statistics(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_matrix(call, "A") != 0) return 1;
    if (A->rows < 2) return supply_call_fail(call, "A has %" PRIu64 " row: a variance needs 2", A->rows);
    double *mean = supply_call_array(call, "mean", A->columns, 1);
    double *variance = supply_call_array(call, "variance", A->columns, 1);
    if (mean == NULL || variance == NULL || column_means(workspace, "A", A, mean) != 0 ||
        column_norms(workspace, "A", A, mean, variance) != 0)
        return 1;
    for (uint64_t j = 0; j < A->columns; j++) variance[j] *= variance[j] / (double)(A->rows - 1);
    return check_finite(call, "A", variance, A->columns);
}

ROUTINE(column_statistics)

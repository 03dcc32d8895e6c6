#include <inttypes.h>

#include "checks.h"
#include "portions.h"
#include "ranks_of_call.h"
#include "routines.h"

static double squared(double value) { return value * value; }

/* Adds the squared distances of this rank's rows from the mean. */
static void add_dense(const supply_matrix_t *A, const double *mean, double *squares) {
    for (uint64_t i = 0; i < A->local_rows; i++)
        for (uint64_t j = 0; j < A->columns; j++) squares[j] += squared(A->values[i * A->columns + j] - mean[j]);
}

/* The same. zeros: memory for a number of each column. */
static void add_sparse(const supply_matrix_t *A, const double *mean, double *squares, double *zeros) {
    for (uint64_t j = 0; j < A->columns; j++) zeros[j] = (double)A->local_rows;
    for (uint64_t at = A->row_offsets[0]; at < A->row_offsets[A->local_rows]; at++) {
        const uint32_t j = A->column_indices[at];
        squares[j] += squared(A->entries[at] - mean[j]);
        zeros[j]--;
    }
    for (uint64_t j = 0; j < A->columns; j++) squares[j] += zeros[j] * squared(mean[j]);
}

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    double *mean = supply_call_array(call, "mean", A->columns, 1);
    double *variance = supply_call_array(call, "variance", A->columns, 1);
    double *zeros = workspace_add(workspace, A->columns);
    if (mean == NULL || variance == NULL || workspace_check(workspace) != 0) return 1;
    column_means(call, A, mean);
    if (A->row_offsets == NULL)
        add_dense(A, mean, variance);
    else
        add_sparse(A, mean, variance, zeros);
    sum_over_ranks(call, variance, A->columns);
    for (uint64_t j = 0; j < A->columns; j++) variance[j] /= (double)(A->rows - 1);
    return check_finite(call, "A", variance, A->columns);
}

int routine_column_statistics(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_matrix(call, "A") != 0) return 1;
    if (A->rows < 2) return supply_call_fail(call, "A has %" PRIu64 " row: a variance needs 2", A->rows);
    const int status = run(&workspace);
    workspace_free(&workspace);
    return status;
}

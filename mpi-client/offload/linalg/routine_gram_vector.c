#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "checks.h"
#include "ranks_of_call.h"
#include "routines.h"
#include "row_operator.h"

static void normalize(double *vector, uint64_t count) {
    double square = 0;
    for (uint64_t i = 0; i < count; i++) square += vector[i] * vector[i];
    for (uint64_t i = 0; square > 0 && i < count; i++) vector[i] /= sqrt(square);
}

/* All rows of a matrix with one column, on all ranks. */
static void gather(supply_call_t *call, const char *name, double *whole) {
    const supply_matrix_t *v = supply_call_matrix(call, name);
    if (is_small_array(call, name)) {
        memcpy(whole, v->values, v->rows * sizeof *whole);
        return;
    }
    memset(whole, 0, v->rows * sizeof *whole);
    if (v->local_rows > 0) memcpy(whole + v->first_row, v->values, v->local_rows * sizeof *whole);
    sum_over_ranks(call, whole, v->rows);
}

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const int64_t iterations = supply_call_integer(call, "iterations");
    double *result = supply_call_array(call, "vector", A->columns, 1);
    double *vector = workspace_add(workspace, A->columns);
    struct row_operator op;
    row_operator_init(&op, workspace, A, NULL, 1);
    if (result == NULL || workspace_check(workspace) != 0) return 1;
    gather(call, "v", vector);
    for (int64_t i = 0; i < iterations; i++) {
        if (i > 0) memcpy(vector, result, A->columns * sizeof *vector);
        if (i > 0) normalize(vector, A->columns);
        row_operator_apply_gram(&op, vector, 1, result);
        if (report_progress(call, (uint64_t)i, (uint64_t)iterations) != 0) return 1;
    }
    return check_all_finite(call, "A or v", result, A->columns);
}

static int check_vector(supply_call_t *call) {
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *v = supply_call_matrix(call, "v");
    if (A->columns == v->rows && v->columns == 1) return 0;
    return supply_call_fail(call,
                            "A is %" PRIu64 " × %" PRIu64 ", and v is %" PRIu64 " × %" PRIu64
                            ": v must have one column, with a value for each column of A",
                            A->rows, A->columns, v->rows, v->columns);
}

int routine_gram_vector(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const int status = check_matrix(call, "A") || check_not_sparse(call, "v") || check_vector(call) ||
                       check_count(call, "iterations", INT64_MAX, "of 64 bits") || run(&workspace);
    workspace_free(&workspace);
    return status;
}

#include <inttypes.h>

#include "checks.h"
#include "cholesky.h"
#include "conjugate_gradients.h"
#include "ranks_of_call.h"
#include "routines.h"

/* More columns make conjugate gradients the cheaper ones. */
#define CHOLESKY_COLUMNS_MAX 4000

static const char *const methods[] = {"auto", "cholesky", "cg", NULL};
enum method { AUTO, CHOLESKY, CONJUGATE_GRADIENTS };

static enum method choose(const supply_matrix_t *A, int given) {
    if (given != AUTO) return (enum method)given;
    return A->row_offsets != NULL || A->columns > CHOLESKY_COLUMNS_MAX ? CONJUGATE_GRADIENTS : CHOLESKY;
}

static int solve(struct workspace *workspace, const struct row_operator *op, enum method method, const double *b,
                 double *w) {
    supply_call_t *call = workspace->call;
    const double l2 = supply_call_number(call, "l2");
    double *right = workspace_add(workspace, op->A->columns);
    if (workspace_check(workspace) != 0) return 1;
    row_operator_apply_transpose(op, b, 1, right);
    sum_over_ranks(call, right, op->A->columns);
    if (check_all_finite(call, "A or b", right, op->A->columns) != 0) return 1;
    if (method == CHOLESKY) return cholesky(workspace, op, l2, right, b, w);
    return conjugate_gradients(workspace,
                               &(struct conjugate_gradients){op, l2, 1, right, supply_call_number(call, "tolerance"),
                                                             supply_call_integer(call, "iterations")},
                               w);
}

static int run(struct workspace *workspace, int given) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *b = supply_call_matrix(call, "b");
    const bool has_intercept = supply_call_integer(call, "intercept") != 0;
    double *w = supply_call_array(call, "coefficients", A->columns, 1);
    double *intercept = supply_call_array(call, "intercept", 1, 1);
    double *mean = has_intercept ? workspace_add(workspace, A->columns) : NULL;
    double *centred = workspace_add(workspace, A->local_rows);
    struct row_operator op;
    row_operator_init(&op, workspace, A, mean, 1);
    if (w == NULL || intercept == NULL || workspace_check(workspace) != 0) return 1;
    if (has_intercept) {
        column_means(call, A, mean);
        column_means(call, b, intercept);
    }
    for (uint64_t i = 0; i < A->local_rows; i++) centred[i] = b->values[i] - *intercept;
    if (solve(workspace, &op, choose(A, given), centred, w) != 0) return 1;
    for (uint64_t j = 0; has_intercept && j < A->columns; j++) *intercept -= mean[j] * w[j];
    return 0;
}

static int check_parameters(supply_call_t *call, int *method) {
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *b = supply_call_matrix(call, "b");
    if (check_matrix(call, "A") || check_dense(call, "b") || check_same_rows(call, "A", "b") ||
        check_choice(call, "method", methods, method) || check_not_negative(call, "l2") ||
        check_not_negative(call, "tolerance") || check_count(call, "iterations", INT64_MAX, "of 64 bits"))
        return 1;
    if (b->columns != 1)
        return supply_call_fail(
            call, "A is %" PRIu64 " × %" PRIu64 ", and b is %" PRIu64 " × %" PRIu64 ": b must have one column", A->rows,
            A->columns, b->rows, b->columns);
    if (*method == CHOLESKY && A->row_offsets != NULL) return supply_call_fail(call, "A is sparse: use method=cg");
    return 0;
}

int routine_ridge(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    int method;
    const int status = check_parameters(call, &method) || run(&workspace, method);
    workspace_free(&workspace);
    return status;
}

#include "checks.h"
#include "conjugate_gradients.h"
#include "ranks_of_call.h"
#include "routines.h"

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *B = supply_call_matrix(call, "B");
    const uint64_t count = A->columns * B->columns;
    double *X = supply_call_array(call, "X", A->columns, B->columns);
    double *right = workspace_add(workspace, count);
    struct row_operator op;
    row_operator_init(&op, workspace, A, NULL, B->columns);
    if (X == NULL || workspace_check(workspace) != 0) return 1;
    row_operator_apply_transpose(&op, B->values, B->columns, right);
    sum_over_ranks(call, right, count);
    if (check_all_finite(call, "A or B", right, count) != 0) return 1;
    const struct conjugate_gradients problem = {
        &op,   supply_call_number(call, "l2"),        B->columns,
        right, supply_call_number(call, "tolerance"), supply_call_integer(call, "iterations")};
    return conjugate_gradients(workspace, &problem, X);
}

int routine_conjugate_gradient(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const int status = check_matrix(call, "A") || check_dense(call, "B") || check_same_rows(call, "A", "B") ||
                       check_not_negative(call, "l2") || check_not_negative(call, "tolerance") ||
                       check_count(call, "iterations", INT64_MAX, "of 64 bits") || run(&workspace);
    workspace_free(&workspace);
    return status;
}

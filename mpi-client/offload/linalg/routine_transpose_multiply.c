#include "checks.h"
#include "ranks_of_call.h"
#include "routines.h"
#include "row_operator.h"

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *B = supply_call_matrix(call, "B");
    struct row_operator op;
    row_operator_init(&op, workspace, A, NULL, 0);
    double *C = supply_call_array(call, "C", A->columns, B->columns);
    if (C == NULL || workspace_check(workspace) != 0) return 1;
    row_operator_apply_transpose(&op, B->values, B->columns, C);
    sum_over_ranks(call, C, A->columns * B->columns);
    return 0;
}

int routine_transpose_multiply(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const int status =
        check_matrix(call, "A") || check_dense(call, "B") || check_same_rows(call, "A", "B") || run(&workspace);
    workspace_free(&workspace);
    return status;
}

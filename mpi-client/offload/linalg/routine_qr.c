#include <inttypes.h>
#include <string.h>

#include "checks.h"
#include "routines.h"
#include "tsqr.h"

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *Q = supply_call_rows(call, "Q", A, A->columns);
    double *R = supply_call_array(call, "R", A->columns, A->columns);
    if (Q == NULL || R == NULL) return 1;
    if (A->local_rows > 0) memcpy(Q->values, A->values, A->local_rows * A->columns * sizeof *A->values);
    if (tsqr(workspace, Q->values, A->local_rows, A->columns, R) != 0) return 1;
    /* A value that is not finite makes its column of R so. */
    double *sums = workspace_add(workspace, A->columns);
    if (workspace_check(workspace) != 0) return 1;
    for (uint64_t j = 0; j < A->columns; j++)
        for (uint64_t i = 0; i <= j; i++) sums[j] += R[i * A->columns + j];
    return check_finite(call, "A", sums, A->columns);
}

int routine_qr(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_dense(call, "A") != 0) return 1;
    if (A->rows < A->columns)
        return supply_call_fail(call, "A is %" PRIu64 " × %" PRIu64 ": it must have at least as many rows as columns",
                                A->rows, A->columns);
    const int status = run(&workspace);
    workspace_free(&workspace);
    return status;
}

#include "checks.h"
#include "routines.h"
#include "singular_values.h"

static int run(struct workspace *workspace, enum singular_method method) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t k = (uint64_t)supply_call_integer(call, "k");
    const supply_matrix_t *U = supply_call_rows(call, "U", A, k);
    double *S = supply_call_array(call, "S", k, 1);
    double *V = supply_call_array(call, "V", A->columns, k);
    if (U == NULL || S == NULL || V == NULL) return 1;
    return singular_values(workspace, "A", method, &(struct singular_values){A, NULL, k, U->values, S, V});
}

int routine_truncated_svd(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t most = A->rows < A->columns ? A->rows : A->columns;
    int method;
    const int status = check_matrix(call, "A") || check_count(call, "k", most, "the smaller side of A") ||
                       check_choice(call, "method", singular_methods, &method) ||
                       run(&workspace, (enum singular_method)method);
    workspace_free(&workspace);
    return status;
}

#include <inttypes.h>

#include "checks.h"
#include "portions.h"
#include "routines.h"
#include "singular_values.h"

static int run(struct workspace *workspace, enum singular_method method) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t k = (uint64_t)supply_call_integer(call, "k");
    double *components = supply_call_array(call, "components", A->columns, k);
    double *variance = supply_call_array(call, "variance", k, 1);
    double *mean = supply_call_array(call, "mean", A->columns, 1);
    const supply_matrix_t *scores = supply_call_rows(call, "scores", A, k);
    if (components == NULL || variance == NULL || mean == NULL || scores == NULL) return 1;
    column_means(call, A, mean);
    if (check_finite(call, "A", mean, A->columns) != 0) return 1;
    const struct singular_values values = {A, mean, k, scores->values, variance, components};
    if (singular_values(workspace, "A", method, &values) != 0) return 1;
    for (uint64_t i = 0; i < A->local_rows; i++)
        for (uint64_t j = 0; j < k; j++) scores->values[i * k + j] *= variance[j];
    for (uint64_t j = 0; j < k; j++) variance[j] *= variance[j] / (double)(A->rows - 1);
    return 0;
}

int routine_pca(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t most = A->rows < A->columns ? A->rows : A->columns;
    int method;
    if (check_matrix(call, "A") != 0) return 1;
    if (A->rows < 2) return supply_call_fail(call, "A has %" PRIu64 " row: a variance needs 2", A->rows);
    const int status = check_count(call, "k", most, "the smaller side of A") ||
                       check_choice(call, "method", singular_methods, &method) ||
                       run(&workspace, (enum singular_method)method);
    workspace_free(&workspace);
    return status;
}

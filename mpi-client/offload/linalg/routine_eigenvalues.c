#include <inttypes.h>

#include "checks.h"
#include "routines.h"
#include "symmetric_lanczos.h"

static const char *const choices[] = {"largest", "smallest", "largest_magnitude", NULL};

static int run(struct workspace *workspace, enum eigenvalues_which which) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t k = (uint64_t)supply_call_integer(call, "k");
    const supply_matrix_t *vectors = supply_call_rows(call, "vectors", A, k);
    double *values = supply_call_array(call, "values", k, 1);
    struct row_operator op;
    row_operator_init(&op, workspace, A, NULL, 2);
    if (vectors == NULL || values == NULL || workspace_check(workspace) != 0) return 1;
    return symmetric_lanczos(workspace, &op, &(struct eigenvalues){which, k, values, vectors->values});
}

int routine_eigenvalues(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    int which;
    if (check_matrix(call, "A") != 0) return 1;
    if (A->rows != A->columns)
        return supply_call_fail(call, "A is %" PRIu64 " × %" PRIu64 ": eigenvalues need a square matrix", A->rows,
                                A->columns);
    const int status = check_count(call, "k", A->rows, "the rows of A") ||
                       check_choice(call, "which", choices, &which) || run(&workspace, (enum eigenvalues_which)which);
    workspace_free(&workspace);
    return status;
}

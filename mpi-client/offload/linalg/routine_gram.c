#include "checks.h"
#include "gram_matrix.h"
#include "ranks_of_call.h"
#include "routines.h"

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    double *gram = supply_call_array(call, "gram", A->columns, A->columns);
    if (gram == NULL || gram_matrix(workspace, A, NULL, gram) != 0) return 1;
    sum_over_ranks(call, gram, A->columns * A->columns);
    complete_symmetric(gram, A->columns);
    return check_gram(workspace, "A", gram, A->columns);
}

int routine_gram(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const int status = check_dense(call, "A") || run(&workspace);
    workspace_free(&workspace);
    return status;
}

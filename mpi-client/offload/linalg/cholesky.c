#include "cholesky.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gram_matrix.h"
#include "lapack.h"
#include "ranks_of_call.h"

/* Of the solution. A larger correction says that the first solution has hardly a digit. */
#define CORRECTION_MAX 1e-2

struct normal_equations {
    supply_call_t *call;
    int n;
    double *factor; /**< on rank 0 */
};

static int fail_as_singular(supply_call_t *call) {
    return supply_call_fail(call, "AᵀA + l2 I is singular, or nearly: columns of A depend on each other, so set l2 "
                                  "larger, or leave columns out");
}

static int factor(const struct normal_equations *equations, double l2) {
    const int n = equations->n;
    double status = 0;
    if (is_first_rank(equations->call)) {
        int info;
        for (size_t i = 0; i < (size_t)n; i++) equations->factor[i * ((size_t)n + 1)] += l2;
        /* Row after row, the upper triangle is LAPACK's lower one. */
        dpotrf_("L", &n, equations->factor, &n, &info, 1);
        status = info;
    }
    copy_from_first(equations->call, &status, 1);
    return status == 0 ? 0 : fail_as_singular(equations->call);
}

/* x: the right side, replaced by the solution */
static void solve(const struct normal_equations *equations, double *x) {
    const int one = 1;
    int info;
    if (is_first_rank(equations->call))
        dpotrs_("L", &equations->n, &one, equations->factor, &equations->n, x, &equations->n, &info, 1);
    copy_from_first(equations->call, x, (size_t)equations->n);
}

/* The residual of the normal equations, from that of b: Aᵀ(b − A w) − l2 w. */
static void residual(const struct row_operator *op, double l2, const double *b, const double *w, double *rows,
                     double *result) {
    row_operator_apply(op, w, 1, rows);
    for (uint64_t i = 0; i < op->A->local_rows; i++) rows[i] = b[i] - rows[i];
    row_operator_apply_transpose(op, rows, 1, result);
    sum_over_ranks(op->call, result, op->A->columns);
    for (uint64_t j = 0; j < op->A->columns; j++) result[j] -= l2 * w[j];
}

static double norm(const double *vector, uint64_t count) {
    double square = 0;
    for (uint64_t i = 0; i < count; i++) square += vector[i] * vector[i];
    return sqrt(square);
}

int cholesky(struct workspace *workspace, const struct row_operator *op, double l2, const double *right,
             const double *b, double *w) {
    const uint64_t n = op->A->columns;
    double *gram = workspace_add(workspace, n * n);
    double *rows = workspace_add(workspace, op->A->local_rows);
    double *correction = workspace_add(workspace, n);
    if (workspace_check(workspace) != 0) return 1;
    if (gram_matrix(workspace, op->A, op->mean, gram) != 0) return 1;
    sum_to_first(op->call, gram, n * n);
    const struct normal_equations equations = {op->call, (int)n, gram};
    if (check_gram(workspace, "A", gram, n) != 0 || factor(&equations, l2) != 0) return 1;
    memcpy(w, right, n * sizeof *w);
    solve(&equations, w);
    residual(op, l2, b, w, rows, correction);
    solve(&equations, correction);
    const bool is_small = norm(correction, n) <= CORRECTION_MAX * norm(w, n);
    if (!decided_by_first(op->call, is_small)) return fail_as_singular(op->call);
    for (uint64_t j = 0; j < n; j++) w[j] += correction[j];
    return 0;
}

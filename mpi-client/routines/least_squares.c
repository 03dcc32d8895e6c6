/**
 * Least squares: by the Cholesky factor of AᵀA and by conjugate gradients, and the routines ridge and
 * conjugate_gradient (routines.h).
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "call.h"
#include "lapack.h"
#include "routines.h"
#include "rows.h"

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
static void solve_normal_equations(const struct normal_equations *equations, double *x) {
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

/*
 * Solves least ‖A w − b‖² + l2 ‖w‖², A less its means, by LAPACK's dpotrf of AᵀA + l2 I on rank 0, then corrects w once
 * by the residual of b itself (Björck, "Numerical Methods for Least Squares Problems", 1996, section 2.9.3). right:
 * Aᵀb; b: this rank's rows. w: a value for each column. Not 0: the call has failed, also if AᵀA + l2 I is so near to
 * singular that the correction is large. Collective.
 */
static int cholesky(struct workspace *workspace, const struct row_operator *op, double l2, const double *right,
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
    solve_normal_equations(&equations, w);
    residual(op, l2, b, w, rows, correction);
    solve_normal_equations(&equations, correction);
    const bool is_small = norm(correction, n) <= CORRECTION_MAX * norm(w, n);
    if (!decided_by_first(op->call, is_small)) return fail_as_singular(op->call);
    for (uint64_t j = 0; j < n; j++) w[j] += correction[j];
    return 0;
}

struct conjugate_gradients {
    const struct row_operator *op;
    double l2;
    uint64_t vectors;
    const double *right; /**< columns × vectors */
    double tolerance;    /**< of each vector's residual, relative to its right side */
    int64_t iterations;  /**< at most */
};

struct state {
    uint64_t columns;
    uint64_t vectors;
    double *residual;
    double *direction;
    double *product;  /**< (AᵀA + l2 I) direction */
    double *squares;  /**< of the residuals */
    double *previous; /**< squares of the iteration before */
    double *limits;   /**< squares at which a vector is solved */
};

/* sums[v] = Σ left[j, v] right[j, v] */
static void dot(const struct state *state, const double *left, const double *right, double *sums) {
    memset(sums, 0, state->vectors * sizeof *sums);
    for (uint64_t j = 0; j < state->columns; j++)
        for (uint64_t v = 0; v < state->vectors; v++)
            sums[v] += left[j * state->vectors + v] * right[j * state->vectors + v];
}

static void apply(const struct conjugate_gradients *problem, const double *X, double *Y) {
    const uint64_t count = problem->op->A->columns * problem->vectors;
    row_operator_apply_gram(problem->op, X, problem->vectors, Y);
    for (uint64_t i = 0; i < count; i++) Y[i] += problem->l2 * X[i];
}

static bool is_solved(const struct state *state) {
    for (uint64_t v = 0; v < state->vectors; v++)
        if (!(state->squares[v] <= state->limits[v])) return false;
    return true;
}

/* The step of a vector that is solved is 0: its further steps would be noise. */
static double step_of(const struct state *state, uint64_t v, double curvature) {
    return state->squares[v] > state->limits[v] && curvature > 0 ? state->squares[v] / curvature : 0;
}

static void iterate(const struct conjugate_gradients *problem, struct state *state, double *steps, double *X) {
    apply(problem, state->direction, state->product);
    dot(state, state->direction, state->product, steps);
    for (uint64_t v = 0; v < state->vectors; v++) steps[v] = step_of(state, v, steps[v]);
    memcpy(state->previous, state->squares, state->vectors * sizeof *state->squares);
    for (uint64_t j = 0; j < state->columns; j++)
        for (uint64_t v = 0; v < state->vectors; v++) {
            const uint64_t i = j * state->vectors + v;
            X[i] += steps[v] * state->direction[i];
            state->residual[i] -= steps[v] * state->product[i];
        }
    dot(state, state->residual, state->residual, state->squares);
    for (uint64_t j = 0; j < state->columns; j++)
        for (uint64_t v = 0; v < state->vectors; v++) {
            const uint64_t i = j * state->vectors + v;
            const double turn = state->previous[v] > 0 ? state->squares[v] / state->previous[v] : 0;
            state->direction[i] = state->residual[i] + turn * state->direction[i];
        }
}

/* The largest residual relative to its right side, computed from X. */
static double final_residual(const struct conjugate_gradients *problem, struct state *state, const double *X) {
    double largest = 0;
    apply(problem, X, state->product);
    for (uint64_t i = 0; i < state->columns * state->vectors; i++)
        state->residual[i] = problem->right[i] - state->product[i];
    dot(state, state->residual, state->residual, state->squares);
    dot(state, problem->right, problem->right, state->limits);
    for (uint64_t v = 0; v < state->vectors; v++) {
        const double residual = sqrt(state->squares[v] / (state->limits[v] > 0 ? state->limits[v] : 1));
        if (!(residual <= largest)) largest = residual;
    }
    return largest;
}

/*
 * Solves (AᵀA + l2 I) X = right by conjugate gradients (Hestenes and Stiefel, 1952; Golub and Van Loan, section 11.3),
 * one for each vector, all with one pass over the rows an iteration. X: columns × vectors, 0 each. Computes the
 * residual again at the end. Not 0: the call has failed, also if it did not converge. Collective.
 */
static int conjugate_gradients(struct workspace *workspace, const struct conjugate_gradients *problem, double *X) {
    supply_call_t *call = workspace->call;
    struct state state = {.columns = problem->op->A->columns, .vectors = problem->vectors};
    const size_t count = state.columns * state.vectors;
    double **const fields[] = {&state.residual, &state.direction, &state.product};
    for (size_t i = 0; i < 3; i++) *fields[i] = workspace_add(workspace, count);
    double *scalars = workspace_add(workspace, 4 * state.vectors);
    if (workspace_check(workspace) != 0) return 1;
    state.squares = scalars;
    state.previous = scalars + state.vectors;
    state.limits = scalars + 2 * state.vectors;
    memcpy(state.residual, problem->right, count * sizeof *X);
    memcpy(state.direction, problem->right, count * sizeof *X);
    dot(&state, state.residual, state.residual, state.squares);
    for (uint64_t v = 0; v < state.vectors; v++)
        state.limits[v] = state.squares[v] * problem->tolerance * problem->tolerance;
    int64_t iteration = 0;
    while (!decided_by_first(call, is_solved(&state) || iteration >= problem->iterations)) {
        iterate(problem, &state, scalars + 3 * state.vectors, X);
        if (report_progress(call, (uint64_t)++iteration, (uint64_t)problem->iterations) != 0) return 1;
    }
    /* Rounding makes the residual that is carried along too small in the end. */
    const double residual = final_residual(problem, &state, X);
    if (!decided_by_first(call, !(residual <= 10 * problem->tolerance))) return 0;
    return supply_call_fail(call,
                            "conjugate gradients did not converge: after %" PRId64 " iterations a residual is %g of "
                            "its right side, not %g: set l2 or iterations larger",
                            iteration, residual, problem->tolerance);
}

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

static int run_ridge(struct workspace *workspace, int given) {
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
    const int status = check_parameters(call, &method) || run_ridge(&workspace, method);
    workspace_free(&workspace);
    return status;
}

static int run_conjugate_gradient(struct workspace *workspace) {
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
                       check_count(call, "iterations", INT64_MAX, "of 64 bits") || run_conjugate_gradient(&workspace);
    workspace_free(&workspace);
    return status;
}

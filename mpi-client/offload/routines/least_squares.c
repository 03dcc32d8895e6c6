/** Least squares: by the Cholesky factor of AᵀA and by conjugate gradients, and the routine ridge (routines.h). */
#include <cblas.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "call.h"
#include "lapack.h"
#include "routines.h"
#include "rows.h"

/* Of the solution. A larger correction says that the first solution has hardly a digit. */
#define CORRECTION_MAX 1e-2
/* Of a column of b. A smaller correction is rounding: that column has nothing to do with A. */
#define CORRECTION_LEAST 1e-12

/* (AᵀA + diag(shift)) w = Aᵀb for each column of b, A and b less their means, A with scaled columns. */
struct least_squares {
    supply_call_t *call;
    struct row_operator op;
    int n;
    int q;         /**< columns of b */
    double *shift; /**< n */
    const supply_matrix_t *b;
    const double *mean; /**< what is subtracted from each row of b */
    double *rows;       /**< 0 each, then of the residual b − A w */
    double *right;      /**< Aᵀb: n × q */
    double *w;          /**< n × q, 0 each, then the solution */
};

static int fail_as_singular(supply_call_t *call) {
    return supply_call_fail(call,
                            "AᵀA + l2 I is singular, or nearly: columns of A depend on each other%s, so set l2 larger, "
                            "or leave columns out",
                            supply_call_integer(call, "intercept") != 0 ? ", or on the intercept" : "");
}

/* 0 if the matrix is singular: its condition, which dpocon estimates, is what rounding makes of sums of `rows` terms.
 */
static double factor_on_first(double *gram, int n, double rows, double *work, int *integers) {
    int info;
    double reciprocal = 0;
    /* Row after row, the upper triangle is LAPACK's lower one. */
    const double norm = dlansy_("1", "L", &n, gram, &n, work, 1, 1);
    dpotrf_("L", &n, gram, &n, &info, 1);
    if (info == 0) dpocon_("L", &n, gram, &n, &norm, &reciprocal, work, integers, &info, 1);
    return reciprocal > (n + sqrt(rows)) * DBL_EPSILON;
}

/* gram: on rank 0, replaced by its factor. */
static int factor(struct workspace *workspace, const struct least_squares *problem, double *gram) {
    const size_t n = (size_t)problem->n;
    double is_regular = 0;
    double *work = workspace_add(workspace, 3 * n);
    int *integers = (int *)workspace_add(workspace, n);
    if (workspace_check(workspace) != 0) return 1;
    if (is_first_rank(problem->call)) {
        for (size_t i = 0; i < n; i++) gram[i * (n + 1)] += problem->shift[i];
        is_regular = factor_on_first(gram, problem->n, (double)problem->op.A->rows, work, integers);
    }
    copy_from_first(problem->call, &is_regular, 1);
    return is_regular != 0 ? 0 : fail_as_singular(problem->call);
}

/* X: the right sides, replaced by the solutions */
static void solve_normal_equations(const struct least_squares *problem, const double *factor, double *X) {
    const int n = problem->n;
    const int q = problem->q;
    for (int step = 0; step < 2 && is_first_rank(problem->call); step++)
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, step == 0 ? CblasTrans : CblasNoTrans, CblasNonUnit, n, q, 1,
                    factor, n, X, q);
    copy_from_first(problem->call, X, (size_t)n * (size_t)q);
}

/* The residual of the normal equations, from that of b: Aᵀ(b − A w) − shift w. w: NULL for 0. Collective. */
static void least_squares_residual(const struct least_squares *problem, const double *w, double *result) {
    const uint64_t q = (uint64_t)problem->q;
    const uint64_t count = (uint64_t)problem->n * q;
    double *rows = problem->rows;
    if (w != NULL) row_operator_apply(&problem->op, w, q, rows);
    for (uint64_t i = 0; i < problem->op.A->local_rows * q; i++)
        rows[i] = problem->b->values[i] - problem->mean[i % q] - rows[i];
    row_operator_apply_transpose(&problem->op, rows, q, result);
    sum_over_ranks(problem->call, result, count);
    for (uint64_t i = 0; w != NULL && i < count; i++) result[i] -= problem->shift[i / q] * w[i];
}

/*
 * Solves by LAPACK's dpotrf on rank 0, then corrects w once by the residual of b itself (Björck, "Numerical Methods for
 * Least Squares Problems", 1996, section 2.9.3). Not 0: the call has failed, also if the matrix is so near to singular
 * that its condition or the correction of a column is large. Collective.
 */
static int cholesky(struct workspace *workspace, const struct least_squares *problem) {
    const struct row_operator *op = &problem->op;
    const int n = problem->n;
    const int q = problem->q;
    const uint64_t square = (uint64_t)n * (uint64_t)n;
    const uint64_t count = (uint64_t)n * (uint64_t)q;
    double *w = problem->w;
    double *gram = workspace_add(workspace, square);
    double *correction = workspace_add(workspace, count);
    double *norms = workspace_add(workspace, (size_t)q);
    bool is_small = true;
    if (workspace_check(workspace) != 0 || column_norms(workspace, "b", problem->b, problem->mean, norms) != 0)
        return 1;
    if (gram_matrix(workspace, op->A, op->mean, op->scale, gram) != 0) return 1;
    sum_to_first(problem->call, gram, square);
    if (factor(workspace, problem, gram) != 0) return 1;
    memcpy(w, problem->right, count * sizeof *w);
    solve_normal_equations(problem, gram, w);
    least_squares_residual(problem, w, correction);
    solve_normal_equations(problem, gram, correction);
    for (int v = 0; v < q; v++)
        is_small = is_small && cblas_dnrm2(n, correction + v, q) <=
                                   fmax(CORRECTION_MAX * cblas_dnrm2(n, w + v, q), CORRECTION_LEAST * norms[v]);
    if (!decided_by_first(problem->call, is_small)) return fail_as_singular(problem->call);
    for (uint64_t i = 0; i < count; i++) w[i] += correction[i];
    return 0;
}

/* Y = (AᵀA + diag(shift)) X */
static void least_squares_apply(const struct least_squares *problem, const double *X, double *Y) {
    const uint64_t q = (uint64_t)problem->q;
    row_operator_apply_gram(&problem->op, X, q, Y);
    for (uint64_t i = 0; i < (uint64_t)problem->n * q; i++) Y[i] += problem->shift[i / q] * X[i];
}

/* What conjugate gradients carry along: vectors of a column for each of b, and squares of the residuals' columns. */
struct gradients {
    double *residual;
    double *direction;
    double *product; /**< (AᵀA + diag(shift)) direction */
    double *squares;
    double *limits; /**< squares at which a column is solved */
};

static bool is_solved(const struct gradients *state, int q) {
    for (int v = 0; v < q; v++)
        if (state->squares[v] > state->limits[v]) return false;
    return true;
}

/* A column that is solved stays as it is: its further steps would be noise. */
static void gradients_step(const struct least_squares *problem, const struct gradients *state) {
    const int n = problem->n;
    const int q = problem->q;
    least_squares_apply(problem, state->direction, state->product);
    for (int v = 0; v < q; v++) {
        double *residual = state->residual + v;
        double *direction = state->direction + v;
        const double square = state->squares[v];
        if (!(square > state->limits[v])) continue;
        const double curvature = cblas_ddot(n, direction, q, state->product + v, q);
        const double step = curvature > 0 ? square / curvature : 0;
        cblas_daxpy(n, step, direction, q, problem->w + v, q);
        cblas_daxpy(n, -step, state->product + v, q, residual, q);
        state->squares[v] = cblas_ddot(n, residual, q, residual, q);
        cblas_dscal(n, state->squares[v] / square, direction, q);
        cblas_daxpy(n, 1, residual, q, direction, q);
    }
    copy_from_first(problem->call, state->squares, (size_t)q);
}

/* The largest residual relative to its right side, computed from w. */
static double final_residual(const struct least_squares *problem, const struct gradients *state) {
    const int n = problem->n;
    const int q = problem->q;
    double largest = 0;
    least_squares_apply(problem, problem->w, state->product);
    for (size_t i = 0; i < (size_t)n * (size_t)q; i++) state->product[i] -= problem->right[i];
    for (int v = 0; v < q; v++) {
        const double length = cblas_dnrm2(n, problem->right + v, q);
        const double rest = cblas_dnrm2(n, state->product + v, q) / (length > 0 ? length : 1);
        largest = fmax(largest, rest <= DBL_MAX ? rest : INFINITY);
    }
    return largest;
}

/*
 * Solves by conjugate gradients (Hestenes and Stiefel, 1952; Golub and Van Loan, section 11.3), one for each column of
 * b, all with one pass over the rows an iteration. Computes the residual again at the end. Changes `right`. Not 0: the
 * call has failed, also if it did not converge. Collective.
 */
static int conjugate_gradients(struct workspace *workspace, const struct least_squares *problem) {
    supply_call_t *call = problem->call;
    const double tolerance = supply_call_number(call, "tolerance");
    const int64_t iterations = supply_call_integer(call, "iterations");
    const int n = problem->n;
    const int q = problem->q;
    const size_t count = (size_t)n * (size_t)q;
    const struct gradients state = {workspace_add(workspace, count), workspace_add(workspace, count),
                                    workspace_add(workspace, count), workspace_add(workspace, (size_t)q),
                                    workspace_add(workspace, (size_t)q)};
    double *factors = workspace_add(workspace, (size_t)q);
    if (workspace_check(workspace) != 0) return 1;
    for (int v = 0; v < q; v++) {
        /* Brings the right side to 1 … 2, so that its square is a number. */
        double *right = problem->right + v;
        factors[v] = scale_of(fabs(right[cblas_idamax(n, right, q) * (size_t)q]));
        cblas_dscal(n, factors[v], right, q);
        state.squares[v] = cblas_ddot(n, right, q, right, q);
    }
    memcpy(state.residual, problem->right, count * sizeof *state.residual);
    memcpy(state.direction, problem->right, count * sizeof *state.direction);
    copy_from_first(call, state.squares, (size_t)q);
    for (int v = 0; v < q; v++) state.limits[v] = state.squares[v] * tolerance * tolerance;
    int64_t iteration = 0;
    while (!is_solved(&state, q) && iteration < iterations) {
        gradients_step(problem, &state);
        if (report_progress(call, (uint64_t)++iteration, (uint64_t)iterations) != 0) return 1;
    }
    /* Rounding makes the residual that is carried along too small in the end. */
    const double residual = final_residual(problem, &state);
    for (int v = 0; v < q; v++) cblas_dscal(n, 1 / factors[v], problem->w + v, q);
    if (!decided_by_first(call, !(residual <= 10 * tolerance))) return 0;
    return supply_call_fail(call,
                            "conjugate gradients did not converge: after %" PRId64 " iterations a residual is %g of "
                            "its right side, not %g: set l2 or iterations larger",
                            iteration, residual, tolerance);
}

/* More columns make conjugate gradients the cheaper ones. */
#define CHOLESKY_COLUMNS_MAX 4000

static const char *const methods[] = {"auto", "cholesky", "cg", NULL};
enum method { AUTO, CHOLESKY, CONJUGATE_GRADIENTS };

static enum method least_squares_choose(const supply_matrix_t *A, int given) {
    if (given != AUTO) return (enum method)given;
    return A->row_offsets != NULL || A->columns > CHOLESKY_COLUMNS_MAX ? CONJUGATE_GRADIENTS : CHOLESKY;
}

/*
 * Scales each column of A, with sqrt(l2) below it, by a power of two to a norm from 1 to 2. Columns of 0 and, beside an
 * intercept, of one value get 0. shift: l2 of the scaled columns. Not 0: the call has failed. Collective.
 */
static int scale_columns(struct workspace *workspace, const supply_matrix_t *A, const double *mean, double *scale,
                         double *shift) {
    const double root = sqrt(supply_call_number(workspace->call, "l2"));
    if (column_norms(workspace, "A", A, mean, scale) != 0) return 1;
    for (uint64_t j = 0; j < A->columns; j++) {
        /* What rounding of the mean leaves of one value. */
        const double least = mean == NULL ? 0 : 4 * DBL_EPSILON * sqrt((double)A->rows) * fabs(mean[j]);
        const double norm = fmax(scale[j] > least ? scale[j] : 0, root);
        scale[j] = norm > 0 ? scale_of(norm) : 0;
        shift[j] = root * scale[j] * (root * scale[j]);
    }
    return 0;
}

static int least_squares_solve(struct workspace *workspace, const struct least_squares *problem, enum method method) {
    least_squares_residual(problem, NULL, problem->right);
    if (check_all_finite(problem->call, "A or b", problem->right, (uint64_t)problem->n * (uint64_t)problem->q) != 0)
        return 1;
    return method == CHOLESKY ? cholesky(workspace, problem) : conjugate_gradients(workspace, problem);
}

static int check_parameters(supply_call_t *call, int *method) {
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_matrix(call, "A") || check_dense(call, "b") || check_same_rows(call, "A", "b") ||
        check_choice(call, "method", methods, method) || check_not_negative(call, "l2") ||
        check_not_negative(call, "tolerance") || check_count(call, "iterations", INT64_MAX, "of 64 bits"))
        return 1;
    if (*method == CHOLESKY && A->row_offsets != NULL) return supply_call_fail(call, "A is sparse: use method=cg");
    return 0;
}

static int run_ridge(struct workspace *workspace) {
    int given;
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *b = supply_call_matrix(call, "b");
    if (check_parameters(call, &given) != 0) return 1;
    const bool has_intercept = supply_call_integer(call, "intercept") != 0;
    const uint64_t q = b->columns;
    const uint64_t count = A->columns * q;
    double *w = supply_call_array(call, "coefficients", A->columns, q);
    double *intercept = supply_call_array(call, "intercept", q, 1);
    double *mean = has_intercept ? workspace_add(workspace, A->columns) : NULL;
    double *scale = workspace_add(workspace, A->columns);
    struct least_squares problem = {.call = call,
                                    .n = (int)A->columns,
                                    .q = (int)q,
                                    .shift = workspace_add(workspace, A->columns),
                                    .b = b,
                                    .mean = intercept,
                                    .rows = workspace_add(workspace, A->local_rows * q),
                                    .right = workspace_add(workspace, count),
                                    .w = w};
    row_operator_init(&problem.op, workspace, A, mean, scale, q);
    if (w == NULL || intercept == NULL || workspace_check(workspace) != 0) return 1;
    if (has_intercept && (column_means(workspace, "A", A, mean) || column_means(workspace, "b", b, intercept)))
        return 1;
    if (scale_columns(workspace, A, mean, scale, problem.shift) != 0) return 1;
    if (least_squares_solve(workspace, &problem, least_squares_choose(A, given)) != 0) return 1;
    for (uint64_t i = 0; i < count; i++) {
        w[i] *= scale[i / q];
        if (has_intercept) intercept[i % q] -= mean[i / q] * w[i];
    }
    return check_all_finite(call, "the result", w, count) || check_all_finite(call, "the result", intercept, q);
}

ROUTINE(ridge)

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

struct normal_equations {
    supply_call_t *call;
    int n;
    double *factor; /**< on rank 0 */
};

static int fail_as_singular(supply_call_t *call) {
    return supply_call_fail(call,
                            "AᵀA + l2 I is singular, or nearly: columns of A depend on each other%s, so set l2 larger, "
                            "or leave columns out",
                            supply_call_integer(call, "intercept") != 0 ? ", or on the intercept" : "");
}

/* 0 if the matrix is singular: its condition, which dpocon estimates, is what rounding makes of sums of `rows` terms.
 */
static double factor_on_first(const struct normal_equations *equations, double rows, double *work, int *integers) {
    const int n = equations->n;
    int info;
    double reciprocal = 0;
    /* Row after row, the upper triangle is LAPACK's lower one. */
    const double norm = dlansy_("1", "L", &n, equations->factor, &n, work, 1, 1);
    dpotrf_("L", &n, equations->factor, &n, &info, 1);
    if (info == 0) dpocon_("L", &n, equations->factor, &n, &norm, &reciprocal, work, integers, &info, 1);
    return reciprocal > (n + sqrt(rows)) * DBL_EPSILON;
}

static int factor(struct workspace *workspace, const struct normal_equations *equations, double rows,
                  const double *shift) {
    const size_t n = (size_t)equations->n;
    double is_regular = 0;
    double *work = workspace_add(workspace, 3 * n);
    int *integers = (int *)workspace_add(workspace, n);
    if (workspace_check(workspace) != 0) return 1;
    if (is_first_rank(equations->call)) {
        for (size_t i = 0; i < n; i++) equations->factor[i * (n + 1)] += shift[i];
        is_regular = factor_on_first(equations, rows, work, integers);
    }
    copy_from_first(equations->call, &is_regular, 1);
    return is_regular != 0 ? 0 : fail_as_singular(equations->call);
}

/* x: the right side, replaced by the solution */
static void solve_normal_equations(const struct normal_equations *equations, double *x) {
    const int one = 1;
    int info;
    if (is_first_rank(equations->call))
        dpotrs_("L", &equations->n, &one, equations->factor, &equations->n, x, &equations->n, &info, 1);
    copy_from_first(equations->call, x, (size_t)equations->n);
}

/* The residual of the normal equations, from that of b: Aᵀ(b − A w) − shift w. */
static void least_squares_residual(const struct row_operator *op, const double *shift, const double *b, const double *w,
                                   double *rows, double *result) {
    row_operator_apply(op, w, 1, rows);
    for (uint64_t i = 0; i < op->A->local_rows; i++) rows[i] = b[i] - rows[i];
    row_operator_apply_transpose(op, rows, 1, result);
    sum_over_ranks(op->call, result, op->A->columns);
    for (uint64_t j = 0; j < op->A->columns; j++) result[j] -= shift[j] * w[j];
}

/*
 * Solves (AᵀA + diag(shift)) w = Aᵀb, A less its means and with scaled columns, by LAPACK's dpotrf on rank 0, then
 * corrects w once by the residual of b itself (Björck, "Numerical Methods for Least Squares Problems", 1996, section
 * 2.9.3). right: Aᵀb; b: this rank's rows. w: a value for each column. Not 0: the call has failed, also if the matrix
 * is so near to singular that its condition or the correction is large. Collective.
 */
static int cholesky(struct workspace *workspace, const struct row_operator *op, const double *shift,
                    const double *right, const double *b, double *w) {
    const uint64_t n = op->A->columns;
    double *gram = workspace_add(workspace, n * n);
    double *rows = workspace_add(workspace, op->A->local_rows);
    double *correction = workspace_add(workspace, n);
    if (workspace_check(workspace) != 0) return 1;
    if (gram_matrix(workspace, op->A, op->mean, op->scale, gram) != 0) return 1;
    sum_to_first(op->call, gram, n * n);
    const struct normal_equations equations = {op->call, (int)n, gram};
    if (factor(workspace, &equations, (double)op->A->rows, shift) != 0) return 1;
    memcpy(w, right, n * sizeof *w);
    solve_normal_equations(&equations, w);
    least_squares_residual(op, shift, b, w, rows, correction);
    solve_normal_equations(&equations, correction);
    const bool is_small = cblas_dnrm2((int)n, correction, 1) <= CORRECTION_MAX * cblas_dnrm2((int)n, w, 1);
    if (!decided_by_first(op->call, is_small)) return fail_as_singular(op->call);
    for (uint64_t j = 0; j < n; j++) w[j] += correction[j];
    return 0;
}

/* y = (AᵀA + diag(shift)) x */
static void least_squares_apply(const struct row_operator *op, const double *shift, const double *x, double *y) {
    row_operator_apply_gram(op, x, 1, y);
    for (uint64_t j = 0; j < op->A->columns; j++) y[j] += shift[j] * x[j];
}

/*
 * Solves (AᵀA + diag(shift)) x = right by conjugate gradients (Hestenes and Stiefel, 1952; Golub and Van Loan, section
 * 11.3). right: changed; x: 0 each. Computes the residual again at the end. Not 0: the call has failed, also if it did
 * not converge. Collective.
 */
static int conjugate_gradients(struct workspace *workspace, const struct row_operator *op, const double *shift,
                               double *right, double *x) {
    supply_call_t *call = workspace->call;
    const double tolerance = supply_call_number(call, "tolerance");
    const int64_t iterations = supply_call_integer(call, "iterations");
    const int n = (int)op->A->columns;
    double *residual = workspace_add(workspace, (size_t)n);
    double *direction = workspace_add(workspace, (size_t)n);
    double *product = workspace_add(workspace, (size_t)n);
    if (workspace_check(workspace) != 0) return 1;
    /* Brings the right side to 1 … 2, so that its square is a number. */
    const double factor = scale_of(fabs(right[cblas_idamax(n, right, 1)]));
    cblas_dscal(n, factor, right, 1);
    memcpy(residual, right, (size_t)n * sizeof *x);
    memcpy(direction, right, (size_t)n * sizeof *x);
    double square = cblas_ddot(n, residual, 1, residual, 1);
    const double limit = square * tolerance * tolerance;
    int64_t iteration = 0;
    while (!decided_by_first(call, square <= limit || iteration >= iterations)) {
        least_squares_apply(op, shift, direction, product);
        const double curvature = cblas_ddot(n, direction, 1, product, 1);
        const double step = curvature > 0 ? square / curvature : 0;
        cblas_daxpy(n, step, direction, 1, x, 1);
        cblas_daxpy(n, -step, product, 1, residual, 1);
        const double previous = square;
        square = cblas_ddot(n, residual, 1, residual, 1);
        cblas_dscal(n, previous > 0 ? square / previous : 0, direction, 1);
        cblas_daxpy(n, 1, residual, 1, direction, 1);
        if (report_progress(call, (uint64_t)++iteration, (uint64_t)iterations) != 0) return 1;
    }
    /* Rounding makes the residual that is carried along too small in the end. */
    least_squares_apply(op, shift, x, product);
    for (int j = 0; j < n; j++) residual[j] = right[j] - product[j];
    const double length = cblas_dnrm2(n, right, 1);
    const double rest = cblas_dnrm2(n, residual, 1) / (length > 0 ? length : 1);
    cblas_dscal(n, 1 / factor, x, 1);
    if (!decided_by_first(call, !(rest <= 10 * tolerance))) return 0;
    return supply_call_fail(call,
                            "conjugate gradients did not converge: after %" PRId64 " iterations a residual is %g of "
                            "its right side, not %g: set l2 or iterations larger",
                            iteration, rest, tolerance);
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

static int least_squares_solve(struct workspace *workspace, const struct row_operator *op, enum method method,
                               const double *b, const double *shift, double *w) {
    supply_call_t *call = workspace->call;
    double *right = workspace_add(workspace, op->A->columns);
    if (workspace_check(workspace) != 0) return 1;
    row_operator_apply_transpose(op, b, 1, right);
    sum_over_ranks(call, right, op->A->columns);
    if (check_all_finite(call, "A or b", right, op->A->columns) != 0) return 1;
    if (method == CHOLESKY) return cholesky(workspace, op, shift, right, b, w);
    return conjugate_gradients(workspace, op, shift, right, w);
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

static int run_ridge(struct workspace *workspace) {
    int given;
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *b = supply_call_matrix(call, "b");
    if (check_parameters(call, &given) != 0) return 1;
    const bool has_intercept = supply_call_integer(call, "intercept") != 0;
    double *w = supply_call_array(call, "coefficients", A->columns, 1);
    double *intercept = supply_call_array(call, "intercept", 1, 1);
    double *mean = has_intercept ? workspace_add(workspace, A->columns) : NULL;
    double *scale = workspace_add(workspace, A->columns);
    double *shift = workspace_add(workspace, A->columns);
    double *centred = workspace_add(workspace, A->local_rows);
    struct row_operator op;
    row_operator_init(&op, workspace, A, mean, scale, 1);
    if (w == NULL || intercept == NULL || workspace_check(workspace) != 0) return 1;
    if (has_intercept && (column_means(workspace, "A", A, mean) || column_means(workspace, "b", b, intercept)))
        return 1;
    if (scale_columns(workspace, A, mean, scale, shift) != 0) return 1;
    for (uint64_t i = 0; i < A->local_rows; i++) centred[i] = b->values[i] - *intercept;
    if (least_squares_solve(workspace, &op, least_squares_choose(A, given), centred, shift, w) != 0) return 1;
    for (uint64_t j = 0; j < A->columns; j++) w[j] *= scale[j];
    for (uint64_t j = 0; has_intercept && j < A->columns; j++) *intercept -= mean[j] * w[j];
    return check_all_finite(call, "the result", w, A->columns) || check_all_finite(call, "the result", intercept, 1);
}

ROUTINE(ridge)

/**
 * Singular values by eigenvalues of AᵀA, or by SLEPc (lanczos.c), and the routines that ask for them: truncated_svd,
 * pca and eigenvalues (routines.h).
 */
#include "lanczos.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "call.h"
#include "lapack.h"
#include "rows.h"
#include "routines.h"

/* Ascending, vectors one after another: as LAPACK does it. */
static int singular_solve(struct workspace *workspace, double *matrix, int n, int k, double *values, double *vectors) {
    const int first = n - k + 1;
    const double unused = 0;
    double size;
    int integers_size;
    int found;
    int info;
    /* Row after row, the upper triangle is LAPACK's lower one. */
    dsyevr_("V", "I", "L", &n, matrix, &n, &unused, &unused, &first, &n, &unused, &found, values, vectors, &n, NULL,
            &size, &(int){-1}, &integers_size, &(int){-1}, &info, 1, 1, 1);
    double *work = workspace_add(workspace, (size_t)size);
    int *integers = (int *)workspace_add(workspace, (size_t)integers_size / 2 + 1);
    int *support = (int *)workspace_add(workspace, (size_t)n);
    if (work == NULL || integers == NULL || support == NULL) return -1;
    dsyevr_("V", "I", "L", &n, matrix, &n, &unused, &unused, &first, &n, &unused, &found, values, vectors, &n, support,
            work, &(int){(int)size}, integers, &integers_size, &info, 1, 1, 1);
    return info != 0 ? info : found - k;
}

/*
 * The `k` largest eigenvalues of a symmetric matrix, descending, and their vectors, as columns, row after row (n × k).
 * Rank 0 computes them by LAPACK's dsyevr, and all ranks get them. matrix: its upper triangle, row after row, is read
 * on rank 0, and overwritten. Collective.
 */
static int largest_eigenvalues(struct workspace *workspace, double *matrix, uint64_t n, uint64_t k, double *values,
                               double *vectors) {
    supply_call_t *call = workspace->call;
    double *ascending = workspace_add(workspace, n);
    double *columns = workspace_add(workspace, n * k);
    if (workspace_check(workspace) != 0) return 1;
    double status = is_first_rank(call) ? singular_solve(workspace, matrix, (int)n, (int)k, ascending, columns) : 0;
    copy_from_first(call, &status, 1);
    if (status != 0)
        return supply_call_fail(call, "LAPACK's dsyevr failed with %g for a matrix of %" PRIu64 " columns", status, n);
    copy_from_first(call, ascending, k);
    copy_from_first(call, columns, n * k);
    for (uint64_t j = 0; j < k; j++) {
        values[j] = ascending[k - 1 - j];
        for (uint64_t i = 0; i < n; i++) vectors[i * k + j] = columns[(k - 1 - j) * n + i];
    }
    return 0;
}

/*
 * With more columns than this, and at least a hundred of them for each vector, Lanczos takes less time than AᵀA and its
 * eigenvalues, which one rank computes: docs/design/offload.md has the measured times.
 */
#define GRAM_COLUMNS_MAX 3000
#define COLUMNS_FOR_A_VECTOR 100
/* Of the largest singular value. AᵀA costs half of the digits, a wrong result all of them. */
#define RESIDUAL_MAX 1e-7

const char *const singular_methods[] = {"auto", "gram", "lanczos", NULL};

static enum singular_method singular_choose(const struct singular_values *values) {
    const uint64_t n = values->A->columns;
    if (values->A->row_offsets != NULL) return METHOD_LANCZOS;
    return lanczos_is_available() && n > GRAM_COLUMNS_MAX && values->k <= n / COLUMNS_FOR_A_VECTOR ? METHOD_LANCZOS
                                                                                                   : METHOD_GRAM;
}

/* L = Vr S Ursᵀ, k × k, on rank 0. L is R, row after row. */
static int decompose_small(struct workspace *workspace, double *R, int k, double *S, double *left, double *right) {
    double size;
    int info;
    int *integers = (int *)workspace_add(workspace, 4 * (size_t)k);
    dgesdd_("A", &k, &k, R, &k, S, left, &k, right, &k, &size, &(int){-1}, integers, &info, 1);
    double *work = workspace_add(workspace, (size_t)size);
    if (integers == NULL || work == NULL) return -1;
    dgesdd_("A", &k, &k, R, &k, S, left, &k, right, &k, work, &(int){(int)size}, integers, &info, 1);
    return info;
}

static void transpose(double *square, uint64_t k) {
    for (uint64_t i = 0; i < k; i++)
        for (uint64_t j = 0; j < i; j++) {
            const double kept = square[i * k + j];
            square[i * k + j] = square[j * k + i];
            square[j * k + i] = kept;
        }
}

/* A V = Q R and R = Ur S Vrᵀ give U = Q Ur, S, and V Vr. */
static int refine(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    supply_call_t *call = workspace->call;
    const uint64_t k = values->k;
    double *R = workspace_add(workspace, k * k);
    double *Vr = workspace_add(workspace, k * k);
    double *Ur = workspace_add(workspace, k * k);
    if (workspace_check(workspace) != 0) return 1;
    row_operator_apply(op, values->V, k, values->U);
    if (tsqr(workspace, values->U, values->A->local_rows, k, R) != 0) return 1;
    /* LAPACK sees R's transpose, Vr S Urᵀ. Its columns of Vr are rows here, and its rows of Urᵀ are columns of Ur. */
    double status = is_first_rank(call) ? decompose_small(workspace, R, (int)k, values->S, Vr, Ur) : 0;
    copy_from_first(call, &status, 1);
    if (status != 0) return supply_call_fail(call, "LAPACK's dgesdd failed with %g", status);
    copy_from_first(call, values->S, k);
    copy_from_first(call, Vr, k * k);
    copy_from_first(call, Ur, k * k);
    transpose(Vr, k);
    return multiply_in_place(workspace, values->U, values->A->local_rows, k, Ur) != 0 ||
           multiply_in_place(workspace, values->V, values->A->columns, k, Vr) != 0;
}

static int by_gram(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    const uint64_t n = values->A->columns;
    double *gram = workspace_add(workspace, n * n);
    if (workspace_check(workspace) != 0) return 1;
    if (gram_matrix(workspace, values->A, values->mean, op->scale, gram) != 0) return 1;
    sum_to_first(workspace->call, gram, n * n);
    if (largest_eigenvalues(workspace, gram, n, values->k, values->S, values->V) != 0) return 1;
    return refine(workspace, op, values);
}

/* Lanczos has no vector for a singular value that is 0 beside the largest one. */
static int by_lanczos(struct workspace *workspace, const struct row_operator *op,
                      const struct singular_values *values) {
    const uint64_t n = values->A->columns;
    double *R = workspace_add(workspace, values->k * values->k);
    if (workspace_check(workspace) != 0 || lanczos(workspace, op, values) != 0) return 1;
    if (tsqr(workspace, values->V, is_first_rank(workspace->call) ? n : 0, values->k, R) != 0) return 1;
    copy_from_first(workspace->call, values->V, n * values->k);
    return refine(workspace, op, values);
}

/* Singular vectors are unique but for their signs, which otherwise depend on the number of ranks. */
static void singular_normalize_signs(const struct singular_values *values) {
    const uint64_t k = values->k;
    for (uint64_t j = 0; j < k; j++) {
        double largest = 0;
        for (uint64_t i = 0; i < values->A->columns; i++)
            if (fabs(values->V[i * k + j]) > fabs(largest)) largest = values->V[i * k + j];
        if (largest >= 0) continue;
        for (uint64_t i = 0; i < values->A->columns; i++) values->V[i * k + j] = -values->V[i * k + j];
        for (uint64_t i = 0; i < values->A->local_rows; i++) values->U[i * k + j] = -values->U[i * k + j];
    }
}

static int check_residual(struct workspace *workspace, const struct row_operator *op,
                          const struct singular_values *values) {
    const uint64_t k = values->k;
    const uint64_t n = values->A->columns;
    double *product = workspace_add(workspace, n * k);
    if (workspace_check(workspace) != 0) return 1;
    row_operator_apply_transpose(op, values->U, k, product);
    sum_over_ranks(workspace->call, product, n * k);
    double largest = 0;
    for (uint64_t j = 0; j < k; j++) {
        double square = 0;
        for (uint64_t i = 0; i < n; i++) {
            const double difference = product[i * k + j] - values->V[i * k + j] * values->S[j];
            square += difference * difference;
        }
        largest = fmax(largest, sqrt(square));
    }
    if (!decided_by_first(workspace->call, !(largest <= RESIDUAL_MAX * values->S[0]))) return 0;
    return supply_call_fail(workspace->call,
                            "AᵀU − V S is %g, too much beside the largest singular value, %g: use "
                            "method=lanczos",
                            largest, values->S[0]);
}

int singular_values(struct workspace *workspace, const char *name, enum singular_method method,
                    const struct singular_values *values) {
    struct row_operator op;
    const double *scale;
    double factor;
    double norm;
    if (method == METHOD_AUTO) method = singular_choose(values);
    if (method == METHOD_GRAM && values->A->row_offsets != NULL)
        return supply_call_fail(workspace->call, "%s is sparse: use method=lanczos", name);
    if (common_scale(workspace, name, values->A, values->mean, &scale, &factor, &norm) != 0) return 1;
    row_operator_init(&op, workspace, values->A, values->mean, scale, values->k);
    if (workspace_check(workspace) != 0) return 1;
    if ((method == METHOD_GRAM ? by_gram(workspace, &op, values) : by_lanczos(workspace, &op, values)) != 0) return 1;
    singular_normalize_signs(values);
    if (check_residual(workspace, &op, values) != 0) return 1;
    for (uint64_t j = 0; j < values->k; j++) values->S[j] /= factor;
    return 0;
}

static int check_wanted(supply_call_t *call, int *method) {
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t most = A->rows < A->columns ? A->rows : A->columns;
    return check_count(call, "k", most, "the smaller side of A") ||
           check_choice(call, "method", singular_methods, method);
}

static int run_truncated_svd(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    int method;
    if (check_matrix(call, "A") || check_wanted(call, &method)) return 1;
    const uint64_t k = (uint64_t)supply_call_integer(call, "k");
    const supply_matrix_t *U = supply_call_rows(call, "U", A, k);
    double *S = supply_call_array(call, "S", k, 1);
    double *V = supply_call_array(call, "V", A->columns, k);
    if (U == NULL || S == NULL || V == NULL) return 1;
    return singular_values(workspace, "A", (enum singular_method)method,
                           &(struct singular_values){A, NULL, k, U->values, S, V});
}

ROUTINE(truncated_svd)

static int run_pca(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    int method;
    if (check_matrix(call, "A") != 0) return 1;
    if (A->rows < 2) return supply_call_fail(call, "A has %" PRIu64 " row: a variance needs 2", A->rows);
    if (check_wanted(call, &method) != 0) return 1;
    const uint64_t k = (uint64_t)supply_call_integer(call, "k");
    double *components = supply_call_array(call, "components", A->columns, k);
    double *variance = supply_call_array(call, "variance", k, 1);
    double *mean = supply_call_array(call, "mean", A->columns, 1);
    const supply_matrix_t *scores = supply_call_rows(call, "scores", A, k);
    if (components == NULL || variance == NULL || mean == NULL || scores == NULL) return 1;
    if (column_means(workspace, "A", A, mean) != 0) return 1;
    const struct singular_values values = {A, mean, k, scores->values, variance, components};
    if (singular_values(workspace, "A", (enum singular_method)method, &values) != 0) return 1;
    for (uint64_t i = 0; i < A->local_rows; i++)
        for (uint64_t j = 0; j < k; j++) scores->values[i * k + j] *= variance[j];
    for (uint64_t j = 0; j < k; j++) variance[j] *= variance[j] / (double)(A->rows - 1);
    return check_all_finite(call, "the variance", variance, k);
}

ROUTINE(pca)

static const char *const choices[] = {"largest", "smallest", "largest_magnitude", NULL};

static int run_eigenvalues(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    int which;
    if (check_matrix(call, "A") != 0) return 1;
    if (A->rows != A->columns)
        return supply_call_fail(call, "A is %" PRIu64 " × %" PRIu64 ": eigenvalues need a square matrix", A->rows,
                                A->columns);
    if (check_count(call, "k", A->rows, "the rows of A") || check_choice(call, "which", choices, &which)) return 1;
    const uint64_t k = (uint64_t)supply_call_integer(call, "k");
    const supply_matrix_t *vectors = supply_call_rows(call, "vectors", A, k);
    double *values = supply_call_array(call, "values", k, 1);
    struct row_operator op;
    const double *scale;
    double factor;
    double norm;
    if (vectors == NULL || values == NULL || common_scale(workspace, "A", A, NULL, &scale, &factor, &norm) != 0)
        return 1;
    row_operator_init(&op, workspace, A, NULL, scale, 2);
    if (workspace_check(workspace) != 0 ||
        symmetric_lanczos(workspace, &op,
                          &(struct eigenvalues){(enum eigenvalues_which)which, k, norm, values, vectors->values}) != 0)
        return 1;
    for (uint64_t j = 0; j < k; j++) values[j] /= factor;
    return 0;
}

ROUTINE(eigenvalues)

#include "singular_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gram_matrix.h"
#include "lanczos.h"
#include "lapack.h"
#include "ranks_of_call.h"
#include "row_operator.h"
#include "symmetric.h"
#include "tsqr.h"

/*
 * With more columns than this, and at least a hundred of them for each vector, Lanczos takes less time than AᵀA and its
 * eigenvalues, which one rank computes: docs/design/offload.md has the measured times.
 */
#define GRAM_COLUMNS_MAX 3000
#define COLUMNS_FOR_A_VECTOR 100
/* Of the largest singular value. AᵀA costs half of the digits, a wrong result all of them. */
#define RESIDUAL_MAX 1e-7

const char *const singular_methods[] = {"auto", "gram", "lanczos", NULL};

static enum singular_method choose(const struct singular_values *values) {
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

static int by_gram(struct workspace *workspace, const char *name, const struct row_operator *op,
                   const struct singular_values *values) {
    const uint64_t n = values->A->columns;
    double *gram = workspace_add(workspace, n * n);
    if (workspace_check(workspace) != 0) return 1;
    if (gram_matrix(workspace, values->A, values->mean, gram) != 0) return 1;
    sum_to_first(workspace->call, gram, n * n);
    if (check_gram(workspace, name, gram, n) != 0) return 1;
    if (largest_eigenvalues(workspace, gram, n, values->k, values->S, values->V) != 0) return 1;
    return refine(workspace, op, values);
}

/* Singular vectors are unique but for their signs, which otherwise depend on the number of ranks. */
static void normalize_signs(const struct singular_values *values) {
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
    if (method == METHOD_AUTO) method = choose(values);
    if (method == METHOD_GRAM && values->A->row_offsets != NULL)
        return supply_call_fail(workspace->call, "%s is sparse: use method=lanczos", name);
    row_operator_init(&op, workspace, values->A, values->mean, values->k);
    if (workspace_check(workspace) != 0) return 1;
    if ((method == METHOD_GRAM ? by_gram(workspace, name, &op, values) : lanczos(workspace, &op, values)) != 0)
        return 1;
    normalize_signs(values);
    return check_residual(workspace, &op, values);
}

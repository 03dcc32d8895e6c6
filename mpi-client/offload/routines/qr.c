/**
 * QR factorization of tall matrices by TSQR, and the routine qr (routines.h).
 *
 * Row after row, a matrix is LAPACK's transpose: a QR factorization of the rows is an LQ factorization of the columns
 * that LAPACK sees, A^T = L Q with R = L^T. So nothing is copied. Names here are those of LAPACK's view.
 */
#include "rows.h"

#include <cblas.h>
#include <inttypes.h>
#include <string.h>

#include "call.h"
#include "lapack.h"
#include "routines.h"

#define LEVELS_MAX 32
/* Columns that multiply_left() takes at a time. */
#define STRIP 64

struct tree {
    supply_call_t *call;
    int rank;
    int ranks;
    int n;
    double *factor[LEVELS_MAX]; /**< n × 2n: the Q of two L's side by side, */
    int widths[LEVELS_MAX][2];  /**< and the columns of each: as many as rows below it, at most n */
    double *work;
    double *tau;
    int work_size;
};

static int minimum(int a, int b) { return a < b ? a : b; }

/* a (n × m) = L Q: L, of as many columns as n and m have in common, and Q in place of a. */
static void factor_in_place(const struct tree *tree, double *a, int m, double *L) {
    const int n = tree->n;
    const int rank = minimum(n, m);
    int info;
    memset(L, 0, (size_t)n * (size_t)n * sizeof *L);
    if (m == 0) return;
    dgelqf_(&n, &m, a, &n, tree->tau, tree->work, &tree->work_size, &info);
    for (int j = 0; j < rank; j++) memcpy(L + (size_t)j * n + j, a + (size_t)j * n + j, (size_t)(n - j) * sizeof *L);
    dorglq_(&rank, &m, &rank, a, &n, tree->tau, tree->work, &tree->work_size, &info);
}

/* a (its first `inner` of n rows, m columns) = left (n × inner) × a. strip: n × STRIP. */
static void multiply_left(const double *left, int n, int inner, double *a, uint64_t m, double *strip) {
    for (uint64_t first = 0; first < m; first += STRIP) {
        const int columns = minimum(STRIP, (int)(m - first));
        double *at = a + first * (uint64_t)n;
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, columns, inner, 1, left, n, at, n, 0, strip, n);
        memcpy(at, strip, (size_t)n * (size_t)columns * sizeof *a);
    }
}

/*
 * Rank r meets r + 2^level if r is a multiple of 2^(level + 1). L has `width` columns; more, of 0, would take rows of
 * Q. Returns the levels that this rank has taken part in.
 */
static int combine(struct tree *tree, double *L, int width) {
    const size_t n = (size_t)tree->n;
    const int rank = tree->rank;
    const int ranks = tree->ranks;
    int level = 0;
    for (; 1 << level < ranks; level++) {
        double other = width;
        if (rank & 1 << level) {
            send_values(tree->call, &other, 1, rank - (1 << level));
            send_values(tree->call, L, n * (size_t)width, rank - (1 << level));
            break;
        }
        if (rank + (1 << level) >= ranks) continue;
        receive_values(tree->call, &other, 1, rank + (1 << level));
        memcpy(tree->factor[level], L, n * (size_t)width * sizeof *L);
        receive_values(tree->call, tree->factor[level] + n * (size_t)width, n * (size_t)other, rank + (1 << level));
        tree->widths[level][0] = width;
        tree->widths[level][1] = (int)other;
        factor_in_place(tree, tree->factor[level], width + (int)other, L);
        width = minimum(tree->n, width + (int)other);
    }
    return level;
}

/* The way back: D (n × the width of this rank's L) multiplies the Q of this rank's rows from the left. */
static void distribute(struct tree *tree, int level, double *D, int width, double *strip) {
    const size_t n = (size_t)tree->n;
    const int rank = tree->rank;
    const int ranks = tree->ranks;
    if (rank != 0) {
        for (int i = 0; i < level; i++) width = minimum(tree->n, width + tree->widths[i][1]);
        receive_values(tree->call, D, n * (size_t)width, rank - (1 << level));
    }
    while (level-- > 0) {
        if (rank + (1 << level) >= ranks) continue;
        const int *widths = tree->widths[level];
        multiply_left(D, tree->n, minimum(tree->n, widths[0] + widths[1]), tree->factor[level],
                      (uint64_t)widths[0] + (uint64_t)widths[1], strip);
        send_values(tree->call, tree->factor[level] + n * (size_t)widths[0], n * (size_t)widths[1],
                    rank + (1 << level));
        memcpy(D, tree->factor[level], n * (size_t)widths[0] * sizeof *D);
    }
}

/* D = a diagonal of signs that makes that of R not negative. */
static void qr_normalize_signs(double *R, double *D, size_t n) {
    memset(D, 0, n * n * sizeof *D);
    for (size_t i = 0; i < n; i++) {
        D[i * n + i] = R[i * n + i] < 0 ? -1 : 1;
        if (R[i * n + i] < 0)
            for (size_t j = i; j < n; j++) R[i * n + j] = -R[i * n + j];
    }
}

static void tree_init(struct tree *tree, struct workspace *workspace, uint64_t n) {
    *tree = (struct tree){.call = workspace->call, .n = (int)n, .work_size = 64 * (int)n};
    MPI_Comm_rank(supply_call_comm(workspace->call), &tree->rank);
    MPI_Comm_size(supply_call_comm(workspace->call), &tree->ranks);
    tree->work = workspace_add(workspace, (size_t)tree->work_size);
    tree->tau = workspace_add(workspace, n);
    for (int level = 0; 1 << level < tree->ranks; level++) tree->factor[level] = workspace_add(workspace, 2 * n * n);
}

int tsqr(struct workspace *workspace, double *rows, uint64_t local_rows, uint64_t columns, double *R) {
    struct tree tree;
    double *D = workspace_add(workspace, columns * columns);
    double *strip = workspace_add(workspace, columns * STRIP);
    tree_init(&tree, workspace, columns);
    if (workspace_check(workspace) != 0) return 1;
    const int n = (int)columns;
    const int width = minimum(n, (int)local_rows);
    factor_in_place(&tree, rows, (int)local_rows, R);
    const int level = combine(&tree, R, width);
    copy_from_first(workspace->call, R, columns * columns);
    qr_normalize_signs(R, D, columns);
    distribute(&tree, level, D, width, strip);
    multiply_left(D, n, width, rows, local_rows, strip);
    return 0;
}

int multiply_in_place(struct workspace *workspace, double *rows, uint64_t local_rows, uint64_t columns,
                      const double *right) {
    double *strip = workspace_add(workspace, columns * STRIP);
    if (workspace_check(workspace) != 0) return 1;
    multiply_left(right, (int)columns, (int)columns, rows, local_rows, strip);
    return 0;
}

static int run_qr(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_dense(call, "A") != 0) return 1;
    if (A->rows < A->columns)
        return supply_call_fail(call, "A is %" PRIu64 " × %" PRIu64 ": it must have at least as many rows as columns",
                                A->rows, A->columns);
    const supply_matrix_t *Q = supply_call_rows(call, "Q", A, A->columns);
    double *R = supply_call_array(call, "R", A->columns, A->columns);
    if (Q == NULL || R == NULL) return 1;
    if (A->local_rows > 0) memcpy(Q->values, A->values, A->local_rows * A->columns * sizeof *A->values);
    if (tsqr(workspace, Q->values, A->local_rows, A->columns, R) != 0) return 1;
    /* A value that is not finite makes its column of R so. */
    double *sums = workspace_add(workspace, A->columns);
    if (workspace_check(workspace) != 0) return 1;
    for (uint64_t j = 0; j < A->columns; j++)
        for (uint64_t i = 0; i <= j; i++) sums[j] += R[i * A->columns + j];
    return check_finite(call, "A", sums, A->columns);
}

ROUTINE(qr)

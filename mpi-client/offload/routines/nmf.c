/** The routine nmf (routines.h): factors without negative values. */
#include <cblas.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "call.h"
#include "random_numbers.h"
#include "routines.h"
#include "rows.h"

#define STREAM_W 0
#define STREAM_H 1

struct factorization {
    supply_call_t *call;
    const supply_matrix_t *A;
    struct portions portions;
    uint64_t k;
    double *W;        /**< local rows × k */
    double *H;        /**< k × columns */
    double *HH;       /**< H Hᵀ */
    double *WA;       /**< WᵀA, k × columns, */
    double *WW;       /**< and WᵀW, k × k, in the same memory */
    double *products; /**< of a portion: A Hᵀ, or W H */
};

/* A row of W, component by component. */
static void update_row(double *w, const double *product, const double *HH, uint64_t k) {
    for (uint64_t j = 0; j < k; j++) {
        if (HH[j * k + j] <= 0) continue;
        double gradient = product[j];
        for (uint64_t i = 0; i < k; i++) gradient -= w[i] * HH[i * k + j];
        w[j] = fmax(0, w[j] + gradient / HH[j * k + j]);
    }
}

/* W for the present H, and the products of W that the next H needs. The rows are read once. */
static void update_W(const struct factorization *f) {
    const int n = (int)f->A->columns;
    const int k = (int)f->k;
    memset(f->WA, 0, f->k * (f->A->columns + f->k) * sizeof *f->WA);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, k, k, n, 1, f->H, n, f->H, n, 0, f->HH, k);
    for (uint64_t first = 0, rows; (rows = portion_rows(&f->portions, first)) > 0; first += rows) {
        const double *values = portion_values(&f->portions, first);
        double *W = f->W + first * f->k;
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, k, n, 1, values, n, f->H, n, 0, f->products, k);
        for (uint64_t i = 0; i < rows; i++) update_row(W + i * f->k, f->products + i * f->k, f->HH, f->k);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, n, (int)rows, 1, W, k, values, n, 1, f->WA, n);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, k, (int)rows, 1, W, k, W, k, 1, f->WW, k);
    }
    sum_over_ranks(f->call, f->WA, f->k * (f->A->columns + f->k));
}

/* Returns the largest change of a value of H. */
static double update_H(const struct factorization *f) {
    const uint64_t n = f->A->columns;
    double largest = 0;
    for (uint64_t j = 0; j < f->k; j++) {
        const double scale = f->WW[j * f->k + j];
        double *gradient = f->WA + j * n;
        if (scale <= 0) continue;
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)f->k, (int)n, -1, f->H, (int)n, f->WW + j * f->k, 1, 1, gradient,
                    1);
        for (uint64_t i = 0; i < n; i++) {
            const double value = fmax(0, f->H[j * n + i] + gradient[i] / scale);
            largest = fmax(largest, fabs(value - f->H[j * n + i]));
            f->H[j * n + i] = value;
        }
    }
    return largest;
}

static double nmf_residual(const struct factorization *f) {
    const uint64_t n = f->A->columns;
    double square = 0;
    for (uint64_t first = 0, rows; (rows = portion_rows(&f->portions, first)) > 0; first += rows) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)n, (int)f->k, 1, f->W + first * f->k,
                    (int)f->k, f->H, (int)n, 0, f->products, (int)n);
        square += squared_distance(portion_values(&f->portions, first), f->products, rows * n);
    }
    sum_over_ranks(f->call, &square, 1);
    return sqrt(square);
}

static double largest_of(const double *values, uint64_t count) {
    double largest = 0;
    for (uint64_t i = 0; i < count; i++) largest = fmax(largest, values[i]);
    return largest;
}

/* Random values whose products have the mean of A. */
static int start(const struct factorization *f) {
    const uint64_t n = f->A->columns;
    const uint64_t seed = (uint64_t)supply_call_integer(f->call, "seed");
    double least[2] = {0, 0};
    for (uint64_t i = 0; i < f->A->local_rows * n; i++) {
        least[0] = fmin(least[0], f->A->values[i]);
        least[1] += f->A->values[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, least, 1, MPI_DOUBLE, MPI_MIN, supply_call_comm(f->call));
    sum_over_ranks(f->call, least + 1, 1);
    if (least[0] < 0) return supply_call_fail(f->call, "A has the value %g: all must be 0 or more", least[0]);
    const double scale = 2 * sqrt(least[1] / (double)f->A->rows / (double)n / (double)f->k);
    for (uint64_t i = 0; i < f->A->local_rows * f->k; i++)
        f->W[i] = scale * random_uniform(seed, STREAM_W, f->A->first_row * f->k + i);
    for (uint64_t i = 0; i < f->k * n; i++) f->H[i] = scale * random_uniform(seed, STREAM_H, i);
    return 0;
}

static int nmf_iterate(const struct factorization *f) {
    const int64_t iterations = supply_call_integer(f->call, "iterations");
    const double tolerance = supply_call_number(f->call, "tolerance");
    bool is_done = false;
    for (int64_t i = 0; i < iterations && !is_done; i++) {
        if (report_progress(f->call, (uint64_t)i, (uint64_t)iterations) != 0) return 1;
        update_W(f);
        const double change = update_H(f);
        is_done = decided_by_first(f->call, change <= tolerance * largest_of(f->H, f->k * f->A->columns));
    }
    return 0;
}

static int nmf_run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    struct factorization f = {.call = call, .A = A, .k = (uint64_t)supply_call_integer(call, "k")};
    const supply_matrix_t *W = supply_call_rows(call, "W", A, f.k);
    f.H = supply_call_array(call, "H", f.k, A->columns);
    double *distance = supply_call_array(call, "residual", 1, 1);
    portions_init(&f.portions, workspace, A, NULL, NULL, CACHED_PORTION);
    f.HH = workspace_add(workspace, f.k * f.k);
    f.WA = workspace_add(workspace, f.k * (A->columns + f.k));
    f.products = workspace_add(workspace, f.portions.size * (A->columns > f.k ? A->columns : f.k));
    if (W == NULL || f.H == NULL || distance == NULL || workspace_check(workspace) != 0) return 1;
    f.W = W->values;
    f.WW = f.WA + f.k * A->columns;
    if (check_squares(workspace, "A", A) != 0 || start(&f) != 0 || nmf_iterate(&f) != 0) return 1;
    *distance = nmf_residual(&f);
    return 0;
}

int routine_nmf(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const uint64_t most = A->rows < A->columns ? A->rows : A->columns;
    const int status = check_dense(call, "A") || check_count(call, "k", most, "the smaller side of A") ||
                       check_count(call, "iterations", INT64_MAX, "of 64 bits") ||
                       check_not_negative(call, "tolerance") || nmf_run(&workspace);
    workspace_free(&workspace);
    return status;
}

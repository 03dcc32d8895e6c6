/** Passes over the rows that this rank has, by BLAS, a portion at a time. */
#include "rows.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "call.h"

#define PORTION_ROWS_LEAST 64

void portions_init(struct portions *portions, struct workspace *workspace, const supply_matrix_t *A, const double *mean,
                   const double *scale, uint64_t bytes) {
    uint64_t size = bytes / (A->columns * sizeof(double));
    if (size < PORTION_ROWS_LEAST) size = PORTION_ROWS_LEAST;
    *portions = (struct portions){A, mean, scale, NULL, size};
    if (mean != NULL || scale != NULL) portions->copied = workspace_add(workspace, size * A->columns);
}

/* Rows of the portion that starts at local row `first`; 0 after the last one. */
static uint64_t portion_rows(const struct portions *portions, uint64_t first) {
    const uint64_t left = portions->A->local_rows - first;
    return left < portions->size ? left : portions->size;
}

/* Its values, row after row, until the next call. */
static const double *portion_values(const struct portions *portions, uint64_t first) {
    const uint64_t columns = portions->A->columns;
    const double *values = portions->A->values + first * columns;
    const double *mean = portions->mean;
    const double *scale = portions->scale;
    if (mean == NULL && scale == NULL) return values;
    const uint64_t rows = portion_rows(portions, first);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++) {
            const double value = mean == NULL ? values[i * columns + j] : values[i * columns + j] - mean[j];
            portions->copied[i * columns + j] = scale == NULL ? value : value * scale[j];
        }
    return portions->copied;
}

/* What a pass over the values of each column, less its mean, finds. */
enum measure { SUM, SQUARES, LARGEST };

static inline void measure_value(enum measure what, double value, double scale, double times, double *result) {
    if (what == SUM) *result += times * value;
    if (what == SQUARES) *result += times * (value * scale) * (value * scale);
    /* MPI_MAX does not know NaN. */
    if (what == LARGEST) *result = fabs(value) <= DBL_MAX ? fmax(*result, fabs(value)) : INFINITY;
}

/* zeros: memory for a number of each column. */
static void measure_sparse(enum measure what, const supply_matrix_t *A, const double *mean, const double *scale,
                           double *zeros, double *results) {
    for (uint64_t j = 0; j < A->columns; j++) zeros[j] = (double)A->local_rows;
    for (uint64_t at = A->row_offsets[0]; at < A->row_offsets[A->local_rows]; at++) {
        const uint32_t j = A->column_indices[at];
        measure_value(what, A->entries[at] - mean[j], scale[j], 1, &results[j]);
        zeros[j]--;
    }
    for (uint64_t j = 0; j < A->columns; j++)
        if (zeros[j] > 0) measure_value(what, -mean[j], scale[j], zeros[j], &results[j]);
}

static void measure_columns(supply_call_t *call, enum measure what, const supply_matrix_t *A, const double *mean,
                            const double *scale, double *zeros, double *results) {
    memset(results, 0, A->columns * sizeof *results);
    if (A->row_offsets != NULL) measure_sparse(what, A, mean, scale, zeros, results);
    for (uint64_t i = 0; A->row_offsets == NULL && i < A->local_rows; i++)
        for (uint64_t j = 0; j < A->columns; j++)
            measure_value(what, A->values[i * A->columns + j] - mean[j], scale[j], 1, &results[j]);
    if (what == LARGEST)
        MPI_Allreduce(MPI_IN_PLACE, results, (int)A->columns, MPI_DOUBLE, MPI_MAX, supply_call_comm(call));
    else
        sum_over_ranks(call, results, A->columns);
}

int column_means(struct workspace *workspace, const char *name, const supply_matrix_t *A, double *mean) {
    double *sums = workspace_add(workspace, A->columns);
    double *zeros = workspace_add(workspace, A->columns);
    if (workspace_check(workspace) != 0) return 1;
    memset(mean, 0, A->columns * sizeof *mean);
    for (int pass = 0; pass < 2; pass++) {
        measure_columns(workspace->call, SUM, A, mean, mean, zeros, sums);
        for (uint64_t j = 0; j < A->columns; j++) mean[j] += sums[j] / (double)A->rows;
    }
    return check_finite(workspace->call, name, mean, A->columns);
}

double scale_of(double norm) { return norm > 0 ? ldexp(1, -ilogb(norm)) : 1; }

/* Squares of norms between these, and products of them, are in the range of doubles. */
#define NORM_LEAST 1e-100
#define NORM_MAX 1e100

int column_norms(struct workspace *workspace, const char *name, const supply_matrix_t *A, const double *mean,
                 double *norms) {
    supply_call_t *call = workspace->call;
    const uint64_t n = A->columns;
    double *zeros = workspace_add(workspace, n);
    double *scale = workspace_add(workspace, n);
    double *none = workspace_add(workspace, n);
    bool is_usual = true;
    if (workspace_check(workspace) != 0) return 1;
    if (mean == NULL) mean = none;
    for (uint64_t j = 0; j < n; j++) scale[j] = 1;
    measure_columns(call, SQUARES, A, mean, scale, zeros, norms);
    for (uint64_t j = 0; j < n; j++)
        is_usual = is_usual && norms[j] > NORM_LEAST * NORM_LEAST && norms[j] < NORM_MAX * NORM_MAX;
    if (!decided_by_first(call, is_usual)) {
        measure_columns(call, LARGEST, A, mean, scale, zeros, norms);
        if (check_finite(call, name, norms, n) != 0) return 1;
        for (uint64_t j = 0; j < n; j++) scale[j] = scale_of(norms[j]);
        measure_columns(call, SQUARES, A, mean, scale, zeros, norms);
    }
    for (uint64_t j = 0; j < n; j++) norms[j] = sqrt(norms[j]) / scale[j];
    return check_finite(call, name, norms, n);
}

int check_squares(struct workspace *workspace, const char *name, const supply_matrix_t *A) {
    double *norms = workspace_add(workspace, A->columns);
    double norm = 0;
    if (workspace_check(workspace) != 0 || column_norms(workspace, name, A, NULL, norms) != 0) return 1;
    for (uint64_t j = 0; j < A->columns; j++) norm = fmax(norm, norms[j]);
    if (!decided_by_first(workspace->call, norm > 0 && (norm < NORM_LEAST || norm > NORM_MAX))) return 0;
    return supply_call_fail(workspace->call,
                            "%s has values up to %g, too %s for this routine, which adds their squares: scale it", name,
                            norm, norm > 1 ? "large" : "small");
}

int common_scale(struct workspace *workspace, const char *name, const supply_matrix_t *A, const double *mean,
                 const double **scale, double *factor, double *norm) {
    double *factors = workspace_add(workspace, A->columns);
    if (workspace_check(workspace) != 0 || column_norms(workspace, name, A, mean, factors) != 0) return 1;
    *norm = 0;
    for (uint64_t j = 0; j < A->columns; j++) *norm = fmax(*norm, factors[j]);
    const bool is_usual = *norm > NORM_LEAST && *norm < NORM_MAX;
    *factor = is_usual ? 1 : scale_of(*norm);
    *norm *= *factor;
    for (uint64_t j = 0; j < A->columns; j++) factors[j] = *factor;
    *scale = is_usual ? NULL : factors;
    return 0;
}

void row_operator_init(struct row_operator *op, struct workspace *workspace, const supply_matrix_t *A,
                       const double *mean, const double *scale, uint64_t vectors_max) {
    *op = (struct row_operator){.call = workspace->call, .A = A, .mean = mean, .scale = scale};
    portions_init(&op->portions, workspace, A, A->row_offsets == NULL ? mean : NULL, NULL, CACHED_PORTION);
    op->product = workspace_add(workspace, op->portions.size * vectors_max);
    if (scale != NULL) op->scaled = workspace_add(workspace, A->columns * vectors_max);
}

/* diag(scale) X, in `to`. */
static const double *scaled(const struct row_operator *op, const double *X, uint64_t vectors, double *to) {
    if (op->scale == NULL) return X;
    for (uint64_t i = 0; i < op->A->columns * vectors; i++) to[i] = X[i] * op->scale[i / vectors];
    return to;
}

/* Y = rows X */
static void multiply_dense(const double *rows, uint64_t count, uint64_t columns, const double *X, uint64_t vectors,
                           double *Y) {
    if (count == 0) return;
    if (vectors == 1)
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)count, (int)columns, 1, rows, (int)columns, X, 1, 0, Y, 1);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, (int)vectors, (int)columns, 1, rows,
                    (int)columns, X, (int)vectors, 0, Y, (int)vectors);
}

/* X += rowsᵀ Y */
static void add_transpose_dense(const double *rows, uint64_t count, uint64_t columns, const double *Y, uint64_t vectors,
                                double *X) {
    if (count == 0) return;
    if (vectors == 1)
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)count, (int)columns, 1, rows, (int)columns, Y, 1, 1, X, 1);
    else
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)columns, (int)vectors, (int)count, 1, rows,
                    (int)columns, Y, (int)vectors, 1, X, (int)vectors);
}

static void multiply_sparse(const supply_matrix_t *A, const double *X, uint64_t vectors, double *Y) {
    for (uint64_t i = 0; i < A->local_rows; i++) {
        double *row = Y + i * vectors;
        for (uint64_t v = 0; v < vectors; v++) row[v] = 0;
        for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++)
            for (uint64_t v = 0; v < vectors; v++) row[v] += A->entries[at] * X[A->column_indices[at] * vectors + v];
    }
}

static void add_transpose_sparse(const supply_matrix_t *A, const double *Y, uint64_t vectors, double *X) {
    for (uint64_t i = 0; i < A->local_rows; i++)
        for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++)
            for (uint64_t v = 0; v < vectors; v++)
                X[A->column_indices[at] * vectors + v] += A->entries[at] * Y[i * vectors + v];
}

/* Y −= 1 (meanᵀ X) */
static void subtract_mean(const struct row_operator *op, const double *X, uint64_t vectors, double *Y) {
    for (uint64_t v = 0; v < vectors; v++) {
        double shift = 0;
        for (uint64_t j = 0; j < op->A->columns; j++) shift += op->mean[j] * X[j * vectors + v];
        for (uint64_t i = 0; i < op->A->local_rows; i++) Y[i * vectors + v] -= shift;
    }
}

/* X −= mean (1ᵀ Y) */
static void subtract_mean_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X) {
    for (uint64_t v = 0; v < vectors; v++) {
        double sum = 0;
        for (uint64_t i = 0; i < op->A->local_rows; i++) sum += Y[i * vectors + v];
        for (uint64_t j = 0; j < op->A->columns; j++) X[j * vectors + v] -= op->mean[j] * sum;
    }
}

void row_operator_apply(const struct row_operator *op, const double *X, uint64_t vectors, double *Y) {
    const supply_matrix_t *A = op->A;
    X = scaled(op, X, vectors, op->scaled);
    if (A->row_offsets != NULL) {
        multiply_sparse(A, X, vectors, Y);
        if (op->mean != NULL) subtract_mean(op, X, vectors, Y);
        return;
    }
    /* Subtracted first: afterwards the digits of a small difference are gone. */
    for (uint64_t first = 0, rows; (rows = portion_rows(&op->portions, first)) > 0; first += rows)
        multiply_dense(portion_values(&op->portions, first), rows, A->columns, X, vectors, Y + first * vectors);
}

void row_operator_apply_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X) {
    const supply_matrix_t *A = op->A;
    memset(X, 0, A->columns * vectors * sizeof *X);
    if (A->row_offsets != NULL) {
        add_transpose_sparse(A, Y, vectors, X);
        if (op->mean != NULL) subtract_mean_transpose(op, Y, vectors, X);
    }
    for (uint64_t first = 0, rows; A->row_offsets == NULL && (rows = portion_rows(&op->portions, first)) > 0;
         first += rows)
        add_transpose_dense(portion_values(&op->portions, first), rows, A->columns, Y + first * vectors, vectors, X);
    scaled(op, X, vectors, X);
}

static void add_gram_dense(const struct row_operator *op, const double *W, uint64_t vectors, double *X) {
    const uint64_t columns = op->A->columns;
    for (uint64_t first = 0, rows; (rows = portion_rows(&op->portions, first)) > 0; first += rows) {
        const double *values = portion_values(&op->portions, first);
        multiply_dense(values, rows, columns, W, vectors, op->product);
        add_transpose_dense(values, rows, columns, op->product, vectors, X);
    }
}

/* With a mean: A − 1 meanᵀ is as dense as A is not, so both products are corrected instead. */
static void add_gram_sparse(const struct row_operator *op, const double *W, uint64_t vectors, double *X) {
    double *shift = op->product + vectors;
    double *sums = op->product + 2 * vectors;
    memset(shift, 0, 2 * vectors * sizeof *shift);
    for (uint64_t j = 0; op->mean != NULL && j < op->A->columns; j++)
        for (uint64_t v = 0; v < vectors; v++) shift[v] += op->mean[j] * W[j * vectors + v];
    supply_matrix_t row = *op->A;
    row.local_rows = 1;
    for (uint64_t i = 0; i < op->A->local_rows; i++, row.row_offsets++) {
        multiply_sparse(&row, W, vectors, op->product);
        for (uint64_t v = 0; v < vectors; v++) sums[v] += op->product[v] -= shift[v];
        add_transpose_sparse(&row, op->product, vectors, X);
    }
    for (uint64_t j = 0; op->mean != NULL && j < op->A->columns; j++)
        for (uint64_t v = 0; v < vectors; v++) X[j * vectors + v] -= op->mean[j] * sums[v];
}

void row_operator_apply_gram(const struct row_operator *op, const double *W, uint64_t vectors, double *X) {
    W = scaled(op, W, vectors, op->scaled);
    memset(X, 0, op->A->columns * vectors * sizeof *X);
    if (op->A->row_offsets != NULL)
        add_gram_sparse(op, W, vectors, X);
    else
        add_gram_dense(op, W, vectors, X);
    scaled(op, X, vectors, X);
    sum_over_ranks(op->call, X, op->A->columns * vectors);
}

void nearest_center_init(struct nearest_center *nearest, struct workspace *workspace, const struct portions *portions,
                         uint64_t centers_max) {
    double *of_portion = workspace_add(workspace, portions->size * (centers_max + 2));
    double *of_centers = workspace_add(workspace, centers_max * (portions->A->columns + 1));
    if (of_portion == NULL || of_centers == NULL) return;
    *nearest =
        (struct nearest_center){portions,   of_portion + 2 * portions->size, of_centers + centers_max, of_centers,
                                of_portion, of_portion + portions->size};
}

/* Returns the square of the largest norm. */
static double shift_centers(const struct nearest_center *nearest, const double *centers, uint64_t count) {
    const uint64_t columns = nearest->portions->A->columns;
    double largest = 0;
    for (uint64_t i = 0; i < count * columns; i++)
        nearest->shifted[i] = centers[i] - nearest->portions->mean[i % columns];
    for (uint64_t c = 0; c < count; c++) {
        const double *center = nearest->shifted + c * columns;
        nearest->squares[c] = cblas_ddot((int)columns, center, 1, center, 1);
        largest = fmax(largest, nearest->squares[c]);
    }
    return largest;
}

/* error: by which a value may be wrong beside another one. */
static void find_one(const struct nearest_center *nearest, uint64_t i, const double *row, const double *centers,
                     uint64_t count, double error) {
    const uint64_t columns = nearest->portions->A->columns;
    const double *products = nearest->products + i * count;
    double smallest = INFINITY;
    for (uint64_t c = 0; c < count; c++) smallest = fmin(smallest, nearest->squares[c] - 2 * products[c]);
    nearest->distances[i] = INFINITY;
    for (uint64_t c = 0; c < count; c++) {
        if (nearest->squares[c] - 2 * products[c] > smallest + error) continue;
        const double distance = squared_distance(row, centers + c * columns, columns);
        if (distance >= nearest->distances[i]) continue;
        nearest->distances[i] = distance;
        nearest->labels[i] = (double)c;
    }
}

uint64_t nearest_center_find(const struct nearest_center *nearest, uint64_t first, const double *centers,
                             uint64_t count) {
    const supply_matrix_t *A = nearest->portions->A;
    const int columns = (int)A->columns;
    const uint64_t rows = portion_rows(nearest->portions, first);
    if (rows == 0) return 0;
    const double largest = shift_centers(nearest, centers, count);
    const double *values = portion_values(nearest->portions, first);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)count, columns, 1, values, columns,
                nearest->shifted, columns, 0, nearest->products, (int)count);
    for (uint64_t i = 0; i < rows; i++) {
        const double *row = values + i * A->columns;
        const double square = cblas_ddot(columns, row, 1, row, 1);
        /* Twice the bound of a sum of columns + 4 terms, for two values; 2 (x + y) is (‖a‖ + ‖c‖)² or more. */
        const double error = 8 * (columns + 4) * DBL_EPSILON * (square + largest);
        find_one(nearest, i, A->values + (first + i) * A->columns, centers, count, error);
    }
    return rows;
}

double squared_distance(const double *left, const double *right, uint64_t count) {
    double sum[4] = {0};
    uint64_t j = 0;
    /* Four sums, which the compiler may then keep in one register. */
    for (; j + 4 <= count; j += 4)
        for (uint64_t lane = 0; lane < 4; lane++) {
            const double difference = left[j + lane] - right[j + lane];
            sum[lane] += difference * difference;
        }
    for (; j < count; j++) sum[0] += (left[j] - right[j]) * (left[j] - right[j]);
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* Of rows that are multiplied at a time: enough that adding to `gram` costs little. */
#define STEP_BYTES ((uint64_t)16 << 20)

static void add_product(const double *rows, uint64_t count, uint64_t columns, double *gram) {
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)columns, (int)count, 1, rows, (int)columns, 1, gram,
                (int)columns);
}

/* Ranks have different numbers of portions, and must ask alike whether the call was cancelled. */
static uint64_t most_portions(supply_call_t *call, const struct portions *portions) {
    uint64_t count = (portions->A->local_rows + portions->size - 1) / portions->size;
    MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_UINT64_T, MPI_MAX, supply_call_comm(call));
    return count;
}

int gram_matrix(struct workspace *workspace, const supply_matrix_t *A, const double *mean, const double *scale,
                double *gram) {
    struct portions portions;
    portions_init(&portions, workspace, A, mean, scale, STEP_BYTES);
    if (workspace_check(workspace) != 0) return 1;
    const uint64_t count = most_portions(workspace->call, &portions);
    for (uint64_t i = 0, first = 0; i < count; i++) {
        const uint64_t rows = portion_rows(&portions, first);
        if (rows > 0) add_product(portion_values(&portions, first), rows, A->columns, gram);
        first += rows;
        if (report_progress(workspace->call, i, count) != 0) return 1;
    }
    return 0;
}

void complete_symmetric(double *matrix, uint64_t columns) {
    for (uint64_t i = 0; i < columns; i++)
        for (uint64_t j = 0; j < i; j++) matrix[i * columns + j] = matrix[j * columns + i];
}

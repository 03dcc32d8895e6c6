/** Passes over the rows that this rank has, by BLAS, a portion at a time. */
#include "rows.h"

#include <cblas.h>
#include <string.h>

#include "call.h"

#define PORTION_ROWS_LEAST 64

void portions_init(struct portions *portions, struct workspace *workspace, const supply_matrix_t *A, const double *mean,
                   uint64_t bytes) {
    uint64_t size = bytes / (A->columns * sizeof(double));
    if (size < PORTION_ROWS_LEAST) size = PORTION_ROWS_LEAST;
    *portions = (struct portions){A, mean, NULL, size};
    if (mean != NULL) portions->centred = workspace_add(workspace, size * A->columns);
}

uint64_t portion_rows(const struct portions *portions, uint64_t first) {
    const uint64_t left = portions->A->local_rows - first;
    return left < portions->size ? left : portions->size;
}

const double *portion_values(const struct portions *portions, uint64_t first) {
    const uint64_t columns = portions->A->columns;
    const double *values = portions->A->values + first * columns;
    if (portions->mean == NULL) return values;
    const uint64_t rows = portion_rows(portions, first);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            portions->centred[i * columns + j] = values[i * columns + j] - portions->mean[j];
    return portions->centred;
}

static void add_rows(const supply_matrix_t *A, double *sums) {
    for (uint64_t i = 0; i < A->local_rows; i++) {
        if (A->row_offsets == NULL)
            for (uint64_t j = 0; j < A->columns; j++) sums[j] += A->values[i * A->columns + j];
        else
            for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++)
                sums[A->column_indices[at]] += A->entries[at];
    }
}

void column_means(supply_call_t *call, const supply_matrix_t *A, double *mean) {
    memset(mean, 0, A->columns * sizeof *mean);
    add_rows(A, mean);
    sum_over_ranks(call, mean, A->columns);
    for (uint64_t j = 0; j < A->columns; j++) mean[j] /= (double)A->rows;
}

void row_operator_init(struct row_operator *op, struct workspace *workspace, const supply_matrix_t *A,
                       const double *mean, uint64_t vectors_max) {
    *op = (struct row_operator){.call = workspace->call, .A = A, .mean = mean};
    portions_init(&op->portions, workspace, A, A->row_offsets == NULL ? mean : NULL, CACHED_PORTION);
    op->product = workspace_add(workspace, op->portions.size * vectors_max);
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
    if (A->row_offsets != NULL)
        multiply_sparse(A, X, vectors, Y);
    else
        multiply_dense(A->values, A->local_rows, A->columns, X, vectors, Y);
    if (op->mean != NULL) subtract_mean(op, X, vectors, Y);
}

void row_operator_apply_transpose(const struct row_operator *op, const double *Y, uint64_t vectors, double *X) {
    const supply_matrix_t *A = op->A;
    memset(X, 0, A->columns * vectors * sizeof *X);
    if (A->row_offsets != NULL)
        add_transpose_sparse(A, Y, vectors, X);
    else
        add_transpose_dense(A->values, A->local_rows, A->columns, Y, vectors, X);
    if (op->mean != NULL) subtract_mean_transpose(op, Y, vectors, X);
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
    memset(X, 0, op->A->columns * vectors * sizeof *X);
    if (op->A->row_offsets != NULL)
        add_gram_sparse(op, W, vectors, X);
    else
        add_gram_dense(op, W, vectors, X);
    sum_over_ranks(op->call, X, op->A->columns * vectors);
}

void nearest_center_init(struct nearest_center *nearest, struct workspace *workspace, const struct portions *portions,
                         uint64_t centers_max) {
    *nearest = (struct nearest_center){portions, workspace_add(workspace, portions->size * centers_max),
                                       workspace_add(workspace, centers_max)};
}

void nearest_center_prepare(struct nearest_center *nearest, const double *centers, uint64_t count) {
    const uint64_t columns = nearest->portions->A->columns;
    for (uint64_t c = 0; c < count; c++)
        nearest->squares[c] = cblas_ddot((int)columns, centers + c * columns, 1, centers + c * columns, 1);
}

static uint64_t least(const double *products, const double *squares, uint64_t count) {
    uint64_t nearest = 0;
    double smallest = squares[0] - 2 * products[0];
    for (uint64_t c = 1; c < count; c++) {
        const double value = squares[c] - 2 * products[c];
        if (value < smallest) {
            smallest = value;
            nearest = c;
        }
    }
    return nearest;
}

void nearest_center_find(const struct nearest_center *nearest, const double *values, uint64_t rows,
                         const double *centers, uint64_t count, double *labels) {
    const int columns = (int)nearest->portions->A->columns;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)count, columns, 1, values, columns, centers,
                columns, 0, nearest->products, (int)count);
    for (uint64_t i = 0; i < rows; i++)
        labels[i] = (double)least(nearest->products + i * count, nearest->squares, count);
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

int gram_matrix(struct workspace *workspace, const supply_matrix_t *A, const double *mean, double *gram) {
    struct portions portions;
    portions_init(&portions, workspace, A, mean, STEP_BYTES);
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

int check_gram(struct workspace *workspace, const char *name, const double *gram, uint64_t columns) {
    double *diagonal = workspace_add(workspace, columns);
    if (workspace_check(workspace) != 0) return 1;
    for (uint64_t i = 0; i < columns; i++) diagonal[i] = gram[i * columns + i];
    copy_from_first(workspace->call, diagonal, columns);
    return check_finite(workspace->call, name, diagonal, columns);
}

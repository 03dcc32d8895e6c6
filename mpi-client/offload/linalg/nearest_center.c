#include "nearest_center.h"

#include <cblas.h>

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

#include "portions.h"

#include <string.h>

#include "ranks_of_call.h"

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

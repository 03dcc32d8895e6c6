#include "gram_matrix.h"

#include <cblas.h>

#include "checks.h"
#include "portions.h"
#include "ranks_of_call.h"

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

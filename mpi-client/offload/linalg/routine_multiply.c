#include <cblas.h>
#include <inttypes.h>

#include "checks.h"
#include "ranks_of_call.h"
#include "row_operator.h"
#include "routines.h"

/* The part of B that all ranks have at a time. */
#define PART_BYTES ((uint64_t)16 << 20)

struct product {
    supply_call_t *call;
    const supply_matrix_t *A;
    const supply_matrix_t *B;
    double *C;
    double *part; /**< some rows of B */
    uint64_t part_rows;
};

/* C += A[:, first … first + rows − 1] part */
static void add_part(const struct product *product, uint64_t first, uint64_t rows, const double *part) {
    const supply_matrix_t *A = product->A;
    const uint64_t q = product->B->columns;
    if (A->row_offsets == NULL && A->local_rows > 0)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)A->local_rows, (int)q, (int)rows, 1,
                    A->values + first, (int)A->columns, part, (int)q, 1, product->C, (int)q);
    for (uint64_t i = 0; A->row_offsets != NULL && i < A->local_rows; i++)
        for (uint64_t at = A->row_offsets[i]; at < A->row_offsets[i + 1]; at++) {
            const uint64_t row = A->column_indices[at] - first;
            /* One that is in front of `first` is a large number. */
            if (A->column_indices[at] < first || row >= rows) continue;
            for (uint64_t j = 0; j < q; j++) product->C[i * q + j] += A->entries[at] * part[row * q + j];
        }
}

/* Each part of the rows of one rank goes to all others. */
static int add_rows_of(const struct product *product, int owner, uint64_t first, uint64_t count) {
    const supply_matrix_t *B = product->B;
    const uint64_t q = B->columns;
    int rank;
    MPI_Comm_rank(supply_call_comm(product->call), &rank);
    for (uint64_t done = 0; done < count; done += product->part_rows) {
        const uint64_t rows = count - done < product->part_rows ? count - done : product->part_rows;
        double *part = rank == owner ? B->values + done * q : product->part;
        MPI_Bcast(part, (int)(rows * q), MPI_DOUBLE, owner, supply_call_comm(product->call));
        add_part(product, first + done, rows, part);
        if (report_progress(product->call, first + done, B->rows) != 0) return 1;
    }
    return 0;
}

static int multiply_rows(struct product *product, struct workspace *workspace) {
    int ranks;
    MPI_Comm_size(supply_call_comm(product->call), &ranks);
    product->part_rows = PART_BYTES / (product->B->columns * sizeof(double)) + 1;
    product->part = workspace_add(workspace, product->part_rows * product->B->columns);
    uint64_t *counts = (uint64_t *)workspace_add(workspace, (size_t)ranks);
    if (workspace_check(workspace) != 0) return 1;
    MPI_Allgather(&product->B->local_rows, 1, MPI_UINT64_T, counts, 1, MPI_UINT64_T, supply_call_comm(product->call));
    uint64_t first = 0;
    for (int owner = 0; owner < ranks; first += counts[owner++])
        if (add_rows_of(product, owner, first, counts[owner]) != 0) return 1;
    return 0;
}

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    struct product product = {.call = call, .A = supply_call_matrix(call, "A"), .B = supply_call_matrix(call, "B")};
    const supply_matrix_t *C = supply_call_rows(call, "C", product.A, product.B->columns);
    if (C == NULL) return 1;
    product.C = C->values;
    if (!is_small_array(call, "B")) return multiply_rows(&product, workspace);
    add_part(&product, 0, product.B->rows, product.B->values);
    return 0;
}

static int check_shapes(supply_call_t *call) {
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const supply_matrix_t *B = supply_call_matrix(call, "B");
    if (A->columns == B->rows && B->columns > 0) return 0;
    return supply_call_fail(call,
                            "A is %" PRIu64 " × %" PRIu64 ", and B is %" PRIu64 " × %" PRIu64
                            ": B must have a row for each column of A",
                            A->rows, A->columns, B->rows, B->columns);
}

int routine_multiply(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const int status = check_matrix(call, "A") || check_not_sparse(call, "B") || check_shapes(call) || run(&workspace);
    workspace_free(&workspace);
    return status;
}

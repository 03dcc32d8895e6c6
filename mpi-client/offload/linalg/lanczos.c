#include "lanczos.h"

#include <inttypes.h>
#include <slepcsvd.h>
#include <string.h>

#include "checks.h"
#include "ranks_of_call.h"
#include "shell_vectors.h"
#include "slepc_session.h"

/* Relative to each singular value. The value itself is then right to about the square. */
#define TOLERANCE 1e-10
#define RESTARTS_MAX 1000

bool lanczos_is_available(void) { return true; }

struct shell {
    const struct row_operator *op;
    struct shell_vectors columns; /**< vectors with one value for each column */
    double *whole;
    bool is_cancelled;
    uint64_t k;
};

/* y (a value for each row) = A x */
static PetscErrorCode multiply(Mat matrix, Vec x, Vec y) {
    struct shell *shell;
    double *rows;
    PetscCall(MatShellGetContext(matrix, &shell));
    PetscCall(shell_vectors_gather(&shell->columns, x, shell->whole));
    PetscCall(VecGetArrayWrite(y, &rows));
    row_operator_apply(shell->op, shell->whole, 1, rows);
    return VecRestoreArrayWrite(y, &rows);
}

/* x (a value for each column) = Aᵀ y */
static PetscErrorCode multiply_transpose(Mat matrix, Vec y, Vec x) {
    struct shell *shell;
    const double *rows;
    PetscCall(MatShellGetContext(matrix, &shell));
    PetscCall(VecGetArrayRead(y, &rows));
    row_operator_apply_transpose(shell->op, rows, 1, shell->whole);
    PetscCall(VecRestoreArrayRead(y, &rows));
    return shell_vectors_scatter_sum(&shell->columns, shell->whole, x);
}

static PetscErrorCode stop(SVD svd, PetscInt iteration, PetscInt most, PetscInt converged, PetscInt wanted,
                           SVDConvergedReason *reason, void *context) {
    struct shell *shell = context;
    PetscCall(SVDStoppingBasic(svd, iteration, most, converged, wanted, reason, NULL));
    if (*reason == SVD_CONVERGED_ITERATING &&
        report_progress(shell->op->call, (uint64_t)converged, (uint64_t)wanted) != 0) {
        shell->is_cancelled = true;
        *reason = SVD_CONVERGED_USER;
    }
    return 0;
}

static PetscErrorCode copy_triplets(SVD svd, const struct shell *shell, const struct singular_values *values) {
    const uint64_t k = values->k;
    Mat matrix;
    Vec u;
    Vec v;
    PetscCall(SVDGetOperators(svd, &matrix, NULL));
    PetscCall(MatCreateVecs(matrix, &v, &u));
    for (uint64_t j = 0; j < k; j++) {
        const double *rows;
        PetscCall(SVDGetSingularTriplet(svd, (PetscInt)j, &values->S[j], u, v));
        PetscCall(VecGetArrayRead(u, &rows));
        for (uint64_t i = 0; i < values->A->local_rows; i++) values->U[i * k + j] = rows[i];
        PetscCall(VecRestoreArrayRead(u, &rows));
        PetscCall(shell_vectors_gather(&shell->columns, v, shell->whole));
        for (uint64_t i = 0; i < values->A->columns; i++) values->V[i * k + j] = shell->whole[i];
    }
    PetscCall(VecDestroy(&u));
    return VecDestroy(&v);
}

static PetscErrorCode solve(struct shell *shell, const struct singular_values *values, PetscInt *converged) {
    const MPI_Comm comm = supply_call_comm(shell->op->call);
    const PetscInt k = (PetscInt)values->k;
    Mat matrix;
    SVD svd;
    PetscCall(slepc_session());
    PetscCall(MatCreateShell(comm, (PetscInt)values->A->local_rows, (PetscInt)shell->columns.count, PETSC_DETERMINE,
                             PETSC_DETERMINE, shell, &matrix));
    PetscCall(MatShellSetOperation(matrix, MATOP_MULT, (void (*)(void))multiply));
    PetscCall(MatShellSetOperation(matrix, MATOP_MULT_TRANSPOSE, (void (*)(void))multiply_transpose));
    PetscCall(SVDCreate(comm, &svd));
    PetscCall(SVDSetOperators(svd, matrix, NULL));
    PetscCall(SVDSetImplicitTranspose(svd, PETSC_TRUE));
    PetscCall(SVDSetType(svd, SVDTRLANCZOS));
    PetscCall(SVDSetDimensions(svd, k, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(SVDSetTolerances(svd, TOLERANCE, RESTARTS_MAX));
    PetscCall(SVDSetStoppingTestFunction(svd, stop, shell, NULL));
    PetscCall(SVDSolve(svd));
    PetscCall(SVDGetConverged(svd, converged));
    if (*converged >= k && !shell->is_cancelled) PetscCall(copy_triplets(svd, shell, values));
    PetscCall(SVDDestroy(&svd));
    return MatDestroy(&matrix);
}

int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    struct shell shell = {.op = op, .k = values->k};
    shell.whole = workspace_add(workspace, values->A->columns);
    if (shell_vectors_init(&shell.columns, workspace, values->A->columns) != 0) return 1;
    column_means(op->call, values->A, shell.whole);
    if (check_finite(op->call, "A", shell.whole, values->A->columns) != 0) return 1;
    const uint64_t most = values->A->rows < values->A->columns ? values->A->rows : values->A->columns;
    const uint64_t local_values = values->A->local_rows + (uint64_t)shell.columns.count;
    if (slepc_check_basis(op->call, values->k, most, local_values) != 0) return 1;
    PetscInt converged = 0;
    const PetscErrorCode error = solve(&shell, values, &converged);
    if (error != 0) return slepc_fail(op->call, "trlanczos", error);
    if (shell.is_cancelled) return 1;
    if ((uint64_t)converged >= values->k) return 0;
    return supply_call_fail(op->call,
                            "only %" PRId64 " of %" PRIu64 " singular values converged in %d restarts of the "
                            "Lanczos method: ask for fewer, or use method=gram",
                            (int64_t)converged, values->k, RESTARTS_MAX);
}

#include "symmetric_lanczos.h"

#include <inttypes.h>
#include <math.h>
#include <slepceps.h>

#include "checks.h"
#include "random_numbers.h"
#include "ranks_of_call.h"
#include "shell_vectors.h"
#include "slepc_session.h"

/* Relative to each eigenvalue. */
#define TOLERANCE 1e-10
#define RESTARTS_MAX 1000
/* Of the norms: what rounding leaves of a symmetric matrix is far less. */
#define ASYMMETRY_MAX 1e-10
/* ‖A v − λ v‖, of the largest eigenvalue that was found. */
#define RESIDUAL_MAX 1e-7

struct shell {
    const struct row_operator *op;
    struct shell_vectors rows; /**< vectors with one value for each row, on its rank */
    double *whole;
    bool is_cancelled;
};

static PetscErrorCode multiply(Mat matrix, Vec x, Vec y) {
    struct shell *shell;
    double *product;
    PetscCall(MatShellGetContext(matrix, &shell));
    PetscCall(shell_vectors_gather(&shell->rows, x, shell->whole));
    PetscCall(VecGetArrayWrite(y, &product));
    row_operator_apply(shell->op, shell->whole, 1, product);
    return VecRestoreArrayWrite(y, &product);
}

static PetscErrorCode stop(EPS eps, PetscInt iteration, PetscInt most, PetscInt converged, PetscInt wanted,
                           EPSConvergedReason *reason, void *context) {
    struct shell *shell = context;
    PetscCall(EPSStoppingBasic(eps, iteration, most, converged, wanted, reason, NULL));
    if (*reason == EPS_CONVERGED_ITERATING &&
        report_progress(shell->op->call, (uint64_t)converged, (uint64_t)wanted) != 0) {
        shell->is_cancelled = true;
        *reason = EPS_CONVERGED_USER;
    }
    return 0;
}

/* yᵀA x = xᵀA y for random x and y, but for rounding. */
static int check_symmetric(struct workspace *workspace, const struct row_operator *op) {
    const supply_matrix_t *A = op->A;
    double *vectors = workspace_add(workspace, 2 * A->columns);
    double *products = workspace_add(workspace, 2 * A->local_rows);
    double sums[3] = {0};
    if (workspace_check(workspace) != 0) return 1;
    for (uint64_t i = 0; i < 2 * A->columns; i++) vectors[i] = random_uniform(0, 0, i) - 0.5;
    row_operator_apply(op, vectors, 2, products);
    for (uint64_t i = 0; i < A->local_rows; i++) {
        const double *ours = vectors + 2 * (A->first_row + i);
        sums[0] += ours[1] * products[2 * i] - ours[0] * products[2 * i + 1];
        sums[1] += products[2 * i] * products[2 * i];
        sums[2] += products[2 * i + 1] * products[2 * i + 1];
    }
    sum_over_ranks(op->call, sums, 3);
    if (check_all_finite(op->call, "A", sums + 1, 2) != 0) return 1;
    const double norms = sqrt((sums[1] + sums[2]) * (double)A->columns);
    if (!decided_by_first(op->call, fabs(sums[0]) > ASYMMETRY_MAX * norms)) return 0;
    return supply_call_fail(op->call, "A is not symmetric: yᵀA x − xᵀA y is %g for two random vectors", sums[0]);
}

static PetscErrorCode copy_pairs(EPS eps, const struct shell *shell, const struct eigenvalues *wanted) {
    const uint64_t k = wanted->k;
    Mat matrix;
    Vec vector;
    PetscCall(EPSGetOperators(eps, &matrix, NULL));
    PetscCall(MatCreateVecs(matrix, &vector, NULL));
    for (uint64_t j = 0; j < k; j++) {
        const double *rows;
        double largest = 0;
        PetscCall(EPSGetEigenpair(eps, (PetscInt)j, &wanted->values[j], NULL, vector, NULL));
        PetscCall(shell_vectors_gather(&shell->rows, vector, shell->whole));
        for (uint64_t i = 0; i < shell->op->A->rows; i++)
            if (fabs(shell->whole[i]) > fabs(largest)) largest = shell->whole[i];
        PetscCall(VecGetArrayRead(vector, &rows));
        for (uint64_t i = 0; i < shell->op->A->local_rows; i++)
            wanted->vectors[i * k + j] = largest < 0 ? -rows[i] : rows[i];
        PetscCall(VecRestoreArrayRead(vector, &rows));
    }
    return VecDestroy(&vector);
}

static PetscErrorCode largest_residual(EPS eps, const struct eigenvalues *wanted, double *residual) {
    double scale = 0;
    *residual = 0;
    for (uint64_t j = 0; j < wanted->k; j++) {
        double one;
        PetscCall(EPSComputeError(eps, (PetscInt)j, EPS_ERROR_ABSOLUTE, &one));
        *residual = fmax(*residual, one);
        scale = fmax(scale, fabs(wanted->values[j]));
    }
    if (scale > 0) *residual /= scale;
    return 0;
}

static PetscErrorCode solve(struct shell *shell, const struct eigenvalues *wanted, PetscInt *converged,
                            double *residual) {
    static const EPSWhich which[] = {EPS_LARGEST_REAL, EPS_SMALLEST_REAL, EPS_LARGEST_MAGNITUDE};
    const MPI_Comm comm = supply_call_comm(shell->op->call);
    const PetscInt rows = (PetscInt)shell->op->A->local_rows;
    const PetscInt k = (PetscInt)wanted->k;
    Mat matrix;
    EPS eps;
    PetscCall(slepc_session());
    PetscCall(MatCreateShell(comm, rows, rows, PETSC_DETERMINE, PETSC_DETERMINE, shell, &matrix));
    PetscCall(MatShellSetOperation(matrix, MATOP_MULT, (void (*)(void))multiply));
    PetscCall(EPSCreate(comm, &eps));
    PetscCall(EPSSetOperators(eps, matrix, NULL));
    PetscCall(EPSSetProblemType(eps, EPS_HEP));
    PetscCall(EPSSetType(eps, EPSKRYLOVSCHUR));
    PetscCall(EPSSetWhichEigenpairs(eps, which[wanted->which]));
    PetscCall(EPSSetDimensions(eps, k, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(EPSSetTolerances(eps, TOLERANCE, RESTARTS_MAX));
    PetscCall(EPSSetStoppingTestFunction(eps, stop, shell, NULL));
    PetscCall(EPSSolve(eps));
    PetscCall(EPSGetConverged(eps, converged));
    if (*converged >= k && !shell->is_cancelled) {
        PetscCall(copy_pairs(eps, shell, wanted));
        PetscCall(largest_residual(eps, wanted, residual));
    }
    PetscCall(EPSDestroy(&eps));
    return MatDestroy(&matrix);
}

int symmetric_lanczos(struct workspace *workspace, const struct row_operator *op, const struct eigenvalues *wanted) {
    struct shell shell = {.op = op, .whole = workspace_add(workspace, op->A->rows)};
    if (shell_vectors_of_rows(&shell.rows, workspace, op->A) != 0 || check_symmetric(workspace, op) != 0) return 1;
    if (slepc_check_basis(op->call, wanted->k, op->A->rows, op->A->local_rows) != 0) return 1;
    PetscInt converged = 0;
    double residual = 0;
    const PetscErrorCode error = solve(&shell, wanted, &converged, &residual);
    if (error != 0) return slepc_fail(op->call, "krylovschur", error);
    if (shell.is_cancelled) return 1;
    if (!decided_by_first(op->call, residual <= RESIDUAL_MAX))
        return supply_call_fail(op->call, "‖A v − λ v‖ is %g of the largest eigenvalue: the result is not precise",
                                residual);
    if ((uint64_t)converged >= wanted->k) return 0;
    return supply_call_fail(op->call,
                            "only %" PRId64 " of %" PRIu64 " eigenvalues converged in %d restarts: ask for "
                            "fewer, or for those at the other end",
                            (int64_t)converged, wanted->k, RESTARTS_MAX);
}

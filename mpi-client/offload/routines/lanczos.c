/**
 * The Lanczos methods of SLEPc, on rows that stay where Spark put them. PETSc lives in a server that is not its own: it
 * starts at the first call and installs no signal handlers.
 */
#include "lanczos.h"

#ifdef SUPPLY_SLEPC
#include <inttypes.h>
#include <math.h>
#include <petscvec.h>
#include <slepceps.h>
#include <slepcsvd.h>
#include <slepcsys.h>
#include <string.h>
#include "call.h"
#include "random_numbers.h"
#include "supply_routine.h"

/*
 * Starts PETSc at the first call: with all ranks, without its signal handlers and its output. The program ends
 * it by exiting. Collective.
 */
static PetscErrorCode slepc_session(void) {
    PetscBool started;
    PetscCall(SlepcInitialized(&started));
    if (started) return 0;
    PetscCall(PetscOptionsSetValue(NULL, "-no_signal_handler", "true"));
    PetscCall(PetscOptionsSetValue(NULL, "-skip_petscrc", "true"));
    PetscCall(SlepcInitializeNoArguments());
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    return 0;
}

/*
 * 0 if the nodes have memory for the basis in which SLEPc by default looks for `k` results, of at most `most` vectors
 * with `local_values` values on this rank. Otherwise the call has failed. Collective.
 */
static int slepc_check_basis(supply_call_t *call, uint64_t k, uint64_t most, uint64_t local_values) {
    /* ncv of SLEPc's SVDSetDimensions and EPSSetDimensions: for many results it restarts in parts of 500. */
    uint64_t vectors = k + (k < 500 ? (k > 15 ? k : 15) : 500);
    if (vectors > most) vectors = most;
    return supply_call_check_memory(call, (vectors + 1) * local_values * sizeof(double));
}

/* Fails the call with PETSc's text of an error. */
static int slepc_fail(supply_call_t *call, const char *solver, PetscErrorCode error) {
    const char *text = NULL;
    PetscErrorMessage(error, &text, NULL);
    return supply_call_fail(call, "SLEPc's %s failed: %s (error %d of PETSc)", solver, text == NULL ? "unknown" : text,
                            error);
}

struct shell_vectors {
    MPI_Comm comm;
    int count;    /**< values of this rank */
    int *counts;  /**< of each rank, */
    int *offsets; /**< and where they start */
};

static int lanczos_allocate(struct shell_vectors *vectors, struct workspace *workspace, int *rank, int *ranks) {
    vectors->comm = supply_call_comm(workspace->call);
    MPI_Comm_rank(vectors->comm, rank);
    MPI_Comm_size(vectors->comm, ranks);
    vectors->counts = (int *)workspace_add(workspace, (size_t)*ranks);
    vectors->offsets = (int *)workspace_add(workspace, (size_t)*ranks);
    return workspace_check(workspace);
}

/* Distributes `size` values evenly. Not 0: the call has failed. Collective. */
static int shell_vectors_init(struct shell_vectors *vectors, struct workspace *workspace, uint64_t size) {
    int rank;
    int ranks;
    if (lanczos_allocate(vectors, workspace, &rank, &ranks) != 0) return 1;
    for (int i = 0; i < ranks; i++) {
        vectors->offsets[i] = (int)(size * (uint64_t)i / (uint64_t)ranks);
        vectors->counts[i] = (int)(size * ((uint64_t)i + 1) / (uint64_t)ranks) - vectors->offsets[i];
    }
    vectors->count = vectors->counts[rank];
    return 0;
}

/* Distributes a value for each row of a matrix to the rank that has the row. Not 0: the call has failed. Collective.
 */
static int shell_vectors_of_rows(struct shell_vectors *vectors, struct workspace *workspace, const supply_matrix_t *A) {
    int rank;
    int ranks;
    if (lanczos_allocate(vectors, workspace, &rank, &ranks) != 0) return 1;
    vectors->count = (int)A->local_rows;
    MPI_Allgather(&vectors->count, 1, MPI_INT, vectors->counts, 1, MPI_INT, vectors->comm);
    for (int i = 1; i < ranks; i++) vectors->offsets[i] = vectors->offsets[i - 1] + vectors->counts[i - 1];
    return 0;
}

/* All ranks get the whole vector. Collective. */
static PetscErrorCode shell_vectors_gather(const struct shell_vectors *vectors, Vec from, double *whole) {
    const double *values;
    PetscCall(VecGetArrayRead(from, &values));
    PetscCallMPI(MPI_Allgatherv(values, vectors->count, MPI_DOUBLE, whole, vectors->counts, vectors->offsets,
                                MPI_DOUBLE, vectors->comm));
    return VecRestoreArrayRead(from, &values);
}

/* Each rank gets its part of the sum. Collective. */
static PetscErrorCode shell_vectors_scatter_sum(const struct shell_vectors *vectors, const double *whole, Vec to) {
    double *values;
    PetscCall(VecGetArrayWrite(to, &values));
    PetscCallMPI(MPI_Reduce_scatter(whole, values, vectors->counts, MPI_DOUBLE, MPI_SUM, vectors->comm));
    return VecRestoreArrayWrite(to, &values);
}

static int check_size(const struct row_operator *op) {
    if (op->A->rows <= PETSC_MAX_INT) return 0;
    return supply_call_fail(op->call,
                            "A has %" PRIu64 " rows, and the Lanczos methods of this SLEPc at most %" PRId64
                            ": use method=gram, or a PETSc with 64-bit integers",
                            op->A->rows, (int64_t)PETSC_MAX_INT);
}

/* Relative to each singular value or eigenvalue. A singular value itself is then right to about the square. */
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
    PetscCall(MatShellGetContext(matrix, (void *)&shell));
    PetscCall(shell_vectors_gather(&shell->columns, x, shell->whole));
    PetscCall(VecGetArrayWrite(y, &rows));
    row_operator_apply(shell->op, shell->whole, 1, rows);
    return VecRestoreArrayWrite(y, &rows);
}

/* x (a value for each column) = Aᵀ y */
static PetscErrorCode multiply_transpose(Mat matrix, Vec y, Vec x) {
    struct shell *shell;
    const double *rows;
    PetscCall(MatShellGetContext(matrix, (void *)&shell));
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

static PetscErrorCode copy_vectors_of_columns(SVD svd, const struct shell *shell,
                                              const struct singular_values *values) {
    Mat matrix;
    Vec v;
    PetscCall(SVDGetOperators(svd, &matrix, NULL));
    PetscCall(MatCreateVecs(matrix, &v, NULL));
    for (uint64_t j = 0; j < values->k; j++) {
        PetscCall(SVDGetSingularTriplet(svd, (PetscInt)j, NULL, NULL, v));
        PetscCall(shell_vectors_gather(&shell->columns, v, shell->whole));
        for (uint64_t i = 0; i < values->A->columns; i++) values->V[i * values->k + j] = shell->whole[i];
    }
    return VecDestroy(&v);
}

static PetscErrorCode lanczos_solve(struct shell *shell, const struct singular_values *values, PetscInt *converged) {
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
    if (*converged >= k && !shell->is_cancelled) PetscCall(copy_vectors_of_columns(svd, shell, values));
    PetscCall(SVDDestroy(&svd));
    return MatDestroy(&matrix);
}

int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    struct shell shell = {.op = op, .k = values->k};
    shell.whole = workspace_add(workspace, values->A->columns);
    if (check_size(op) != 0 || shell_vectors_init(&shell.columns, workspace, values->A->columns) != 0) return 1;
    const uint64_t most = values->A->rows < values->A->columns ? values->A->rows : values->A->columns;
    const uint64_t local_values = values->A->local_rows + (uint64_t)shell.columns.count;
    if (slepc_check_basis(op->call, values->k, most, local_values) != 0) return 1;
    PetscInt converged = 0;
    const PetscErrorCode error = lanczos_solve(&shell, values, &converged);
    if (error != 0) return slepc_fail(op->call, "trlanczos", error);
    if (shell.is_cancelled) return 1;
    if ((uint64_t)converged >= values->k) return 0;
    return supply_call_fail(op->call,
                            "only %" PRId64 " of %" PRIu64 " singular values converged in %d restarts of the "
                            "Lanczos method: ask for fewer, or use method=gram",
                            (int64_t)converged, values->k, RESTARTS_MAX);
}

/* Of the norms: what rounding leaves of a symmetric matrix is far less. */
#define ASYMMETRY_MAX 1e-10
/* ‖A v − λ v‖, of the largest eigenvalue that was found, or of A's norm. */
#define RESIDUAL_MAX 1e-7
/* Of A's norm: an eigenvalue that is less is found as precisely as this one. 0 has no digits. */
#define PRECISE_LEAST 1e-3
/* Relative to that, too: what differs by less is one eigenvalue. */
#define MULTIPLE_MIN 1e-8

struct symmetric_shell {
    const struct row_operator *op;
    struct shell_vectors rows; /**< vectors with one value for each row, on its rank */
    double *whole;
    double norm;
    bool is_cancelled;
};

static PetscErrorCode multiply_symmetric(Mat matrix, Vec x, Vec y) {
    struct symmetric_shell *shell;
    double *product;
    PetscCall(MatShellGetContext(matrix, (void *)&shell));
    PetscCall(shell_vectors_gather(&shell->rows, x, shell->whole));
    PetscCall(VecGetArrayWrite(y, &product));
    row_operator_apply(shell->op, shell->whole, 1, product);
    return VecRestoreArrayWrite(y, &product);
}

static PetscErrorCode stop_symmetric(EPS eps, PetscInt iteration, PetscInt most, PetscInt converged, PetscInt wanted,
                                     EPSConvergedReason *reason, void *context) {
    struct symmetric_shell *shell = context;
    PetscCall(EPSStoppingBasic(eps, iteration, most, converged, wanted, reason, NULL));
    if (*reason == EPS_CONVERGED_ITERATING &&
        report_progress(shell->op->call, (uint64_t)converged, (uint64_t)wanted) != 0) {
        shell->is_cancelled = true;
        *reason = EPS_CONVERGED_USER;
    }
    return 0;
}

static PetscErrorCode measure_error(EPS eps, PetscScalar value, PetscScalar imaginary, PetscReal residual,
                                    PetscReal *error, void *context) {
    const struct symmetric_shell *shell = context;
    (void)eps;
    (void)imaginary;
    *error = residual > 0 ? residual / fmax(fabs(value), PRECISE_LEAST * shell->norm) : 0;
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

static PetscErrorCode copy_vectors(const struct symmetric_shell *shell, const struct eigenvalues *wanted,
                                   const Vec *vectors) {
    const uint64_t k = wanted->k;
    for (uint64_t j = 0; j < k; j++) {
        const double *rows;
        double largest = 0;
        PetscCall(shell_vectors_gather(&shell->rows, vectors[j], shell->whole));
        for (uint64_t i = 0; i < shell->op->A->rows; i++)
            if (fabs(shell->whole[i]) > fabs(largest)) largest = shell->whole[i];
        PetscCall(VecGetArrayRead(vectors[j], &rows));
        for (uint64_t i = 0; i < shell->op->A->local_rows; i++)
            wanted->vectors[i * k + j] = largest < 0 ? -rows[i] : rows[i];
        PetscCall(VecRestoreArrayRead(vectors[j], &rows));
    }
    return 0;
}

/* Whether `value` is nearer to the wanted end than `other`, and not only by rounding. */
static bool is_farther(const struct eigenvalues *wanted, double value, double other) {
    const double way = wanted->which == LARGEST    ? value - other
                       : wanted->which == SMALLEST ? other - value
                                                   : fabs(value) - fabs(other);
    return way > MULTIPLE_MIN * fmax(fabs(other), PRECISE_LEAST * wanted->norm);
}

static PetscErrorCode take_pair(EPS eps, PetscInt number, double *value, Vec vector, double *residual) {
    double one;
    PetscCall(EPSGetEigenpair(eps, number, value, NULL, vector, NULL));
    PetscCall(EPSComputeError(eps, number, EPS_ERROR_ABSOLUTE, &one));
    *residual = fmax(*residual, one);
    return 0;
}

/*
 * The Krylov space of one vector has one vector of each eigenvalue, so those of a multiple one may be missing. They are
 * in the complement of `vectors` (k, and one more as memory): looks there until nothing is nearer to the wanted end.
 */
static PetscErrorCode take_missing(EPS eps, const struct symmetric_shell *shell, const struct eigenvalues *wanted,
                                   Vec *vectors, double *residual) {
    const uint64_t last = wanted->k - 1;
    PetscCall(EPSSetDimensions(eps, 1, PETSC_DEFAULT, PETSC_DEFAULT));
    while (wanted->k < shell->op->A->rows) {
        PetscInt converged;
        double value;
        PetscCall(EPSSetDeflationSpace(eps, (PetscInt)wanted->k, vectors));
        PetscCall(EPSSolve(eps));
        PetscCall(EPSGetConverged(eps, &converged));
        /* A missing one would converge, as the others did. */
        if (converged < 1 || shell->is_cancelled) return 0;
        PetscCall(take_pair(eps, 0, &value, vectors[last + 1], residual));
        if (!decided_by_first(shell->op->call, is_farther(wanted, value, wanted->values[last]))) return 0;
        uint64_t at = last;
        Vec vector = vectors[last + 1];
        vectors[last + 1] = vectors[last];
        for (; at > 0 && is_farther(wanted, value, wanted->values[at - 1]); at--) {
            wanted->values[at] = wanted->values[at - 1];
            vectors[at] = vectors[at - 1];
        }
        wanted->values[at] = value;
        vectors[at] = vector;
    }
    return 0;
}

static PetscErrorCode take_pairs(EPS eps, Mat matrix, const struct symmetric_shell *shell,
                                 const struct eigenvalues *wanted, double *residual) {
    Vec vector;
    Vec *vectors;
    const PetscInt k = (PetscInt)wanted->k;
    PetscCall(MatCreateVecs(matrix, &vector, NULL));
    PetscCall(VecDuplicateVecs(vector, k + 1, &vectors));
    for (PetscInt j = 0; j < k; j++) PetscCall(take_pair(eps, j, &wanted->values[j], vectors[j], residual));
    PetscCall(take_missing(eps, shell, wanted, vectors, residual));
    *residual /= fmax(wanted->norm > 0 ? wanted->norm : 1, fabs(wanted->values[0]));
    PetscCall(copy_vectors(shell, wanted, vectors));
    PetscCall(VecDestroyVecs(k + 1, &vectors));
    return VecDestroy(&vector);
}

static PetscErrorCode solve_symmetric(struct symmetric_shell *shell, const struct eigenvalues *wanted,
                                      PetscInt *converged, double *residual) {
    static const EPSWhich which[] = {EPS_LARGEST_REAL, EPS_SMALLEST_REAL, EPS_LARGEST_MAGNITUDE};
    const MPI_Comm comm = supply_call_comm(shell->op->call);
    const PetscInt rows = (PetscInt)shell->op->A->local_rows;
    const PetscInt k = (PetscInt)wanted->k;
    Mat matrix;
    EPS eps;
    PetscCall(slepc_session());
    PetscCall(MatCreateShell(comm, rows, rows, PETSC_DETERMINE, PETSC_DETERMINE, shell, &matrix));
    PetscCall(MatShellSetOperation(matrix, MATOP_MULT, (void (*)(void))multiply_symmetric));
    PetscCall(EPSCreate(comm, &eps));
    PetscCall(EPSSetOperators(eps, matrix, NULL));
    PetscCall(EPSSetProblemType(eps, EPS_HEP));
    PetscCall(EPSSetType(eps, EPSKRYLOVSCHUR));
    PetscCall(EPSSetWhichEigenpairs(eps, which[wanted->which]));
    PetscCall(EPSSetDimensions(eps, k, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(EPSSetTolerances(eps, TOLERANCE, RESTARTS_MAX));
    PetscCall(EPSSetConvergenceTestFunction(eps, measure_error, shell, NULL));
    PetscCall(EPSSetStoppingTestFunction(eps, stop_symmetric, shell, NULL));
    PetscCall(EPSSolve(eps));
    PetscCall(EPSGetConverged(eps, converged));
    if (*converged >= k && !shell->is_cancelled) PetscCall(take_pairs(eps, matrix, shell, wanted, residual));
    PetscCall(EPSDestroy(&eps));
    return MatDestroy(&matrix);
}

int symmetric_lanczos(struct workspace *workspace, const struct row_operator *op, const struct eigenvalues *wanted) {
    struct symmetric_shell shell = {.op = op, .whole = workspace_add(workspace, op->A->rows), .norm = wanted->norm};
    if (check_size(op) != 0 || shell_vectors_of_rows(&shell.rows, workspace, op->A) != 0 ||
        check_symmetric(workspace, op) != 0)
        return 1;
    if (slepc_check_basis(op->call, wanted->k, op->A->rows, op->A->local_rows) != 0) return 1;
    PetscInt converged = 0;
    double residual = 0;
    const PetscErrorCode error = solve_symmetric(&shell, wanted, &converged, &residual);
    if (error != 0) return slepc_fail(op->call, "krylovschur", error);
    if (shell.is_cancelled) return 1;
    if (!decided_by_first(op->call, residual <= RESIDUAL_MAX))
        return supply_call_fail(op->call, "‖A v − λ v‖ is %g of the norm of A: the result is not precise", residual);
    if ((uint64_t)converged >= wanted->k) return 0;
    return supply_call_fail(op->call,
                            "only %" PRId64 " of %" PRIu64 " eigenvalues converged in %d restarts: ask for "
                            "fewer, or for those at the other end",
                            (int64_t)converged, wanted->k, RESTARTS_MAX);
}

#else

bool lanczos_is_available(void) { return false; }

int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    (void)op;
    (void)values;
    return supply_call_fail(workspace->call, "this libsupply_linalg was built without SLEPc, which sparse matrices and "
                                             "method=lanczos need: install slepc-dev, and build it again");
}

int symmetric_lanczos(struct workspace *workspace, const struct row_operator *op, const struct eigenvalues *wanted) {
    (void)op;
    (void)wanted;
    return supply_call_fail(workspace->call, "this libsupply_linalg was built without SLEPc, which eigenvalues need: "
                                             "install slepc-dev, and build it again");
}

#endif

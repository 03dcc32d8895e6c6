#include "shell_vectors.h"

static int allocate(struct shell_vectors *vectors, struct workspace *workspace, int *rank, int *ranks) {
    vectors->comm = supply_call_comm(workspace->call);
    MPI_Comm_rank(vectors->comm, rank);
    MPI_Comm_size(vectors->comm, ranks);
    vectors->counts = (int *)workspace_add(workspace, (size_t)*ranks);
    vectors->offsets = (int *)workspace_add(workspace, (size_t)*ranks);
    return workspace_check(workspace);
}

int shell_vectors_init(struct shell_vectors *vectors, struct workspace *workspace, uint64_t size) {
    int rank;
    int ranks;
    if (allocate(vectors, workspace, &rank, &ranks) != 0) return 1;
    for (int i = 0; i < ranks; i++) {
        vectors->offsets[i] = (int)(size * (uint64_t)i / (uint64_t)ranks);
        vectors->counts[i] = (int)(size * ((uint64_t)i + 1) / (uint64_t)ranks) - vectors->offsets[i];
    }
    vectors->count = vectors->counts[rank];
    return 0;
}

int shell_vectors_of_rows(struct shell_vectors *vectors, struct workspace *workspace, const supply_matrix_t *A) {
    int rank;
    int ranks;
    if (allocate(vectors, workspace, &rank, &ranks) != 0) return 1;
    vectors->count = (int)A->local_rows;
    MPI_Allgather(&vectors->count, 1, MPI_INT, vectors->counts, 1, MPI_INT, vectors->comm);
    for (int i = 1; i < ranks; i++) vectors->offsets[i] = vectors->offsets[i - 1] + vectors->counts[i - 1];
    return 0;
}

PetscErrorCode shell_vectors_gather(const struct shell_vectors *vectors, Vec from, double *whole) {
    const double *values;
    PetscCall(VecGetArrayRead(from, &values));
    PetscCallMPI(MPI_Allgatherv(values, vectors->count, MPI_DOUBLE, whole, vectors->counts, vectors->offsets,
                                MPI_DOUBLE, vectors->comm));
    return VecRestoreArrayRead(from, &values);
}

PetscErrorCode shell_vectors_scatter_sum(const struct shell_vectors *vectors, const double *whole, Vec to) {
    double *values;
    PetscCall(VecGetArrayWrite(to, &values));
    PetscCallMPI(MPI_Reduce_scatter(whole, values, vectors->counts, MPI_DOUBLE, MPI_SUM, vectors->comm));
    return VecRestoreArrayWrite(to, &values);
}

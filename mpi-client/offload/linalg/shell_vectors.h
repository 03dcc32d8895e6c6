/** Vectors of PETSc for matrices whose rows lie where Spark put them. */
#ifndef SHELL_VECTORS_H
#define SHELL_VECTORS_H

#include <petscvec.h>

#include "workspace.h"

struct shell_vectors {
    MPI_Comm comm;
    int count;    /**< values of this rank */
    int *counts;  /**< of each rank, */
    int *offsets; /**< and where they start */
};

/** Distributes `size` values evenly. Not 0: the call has failed. Collective. */
int shell_vectors_init(struct shell_vectors *vectors, struct workspace *workspace, uint64_t size);

/** Distributes a value for each row of a matrix to the rank that has the row. Not 0: the call has failed. Collective.
 */
int shell_vectors_of_rows(struct shell_vectors *vectors, struct workspace *workspace, const supply_matrix_t *A);

/** All ranks get the whole vector. Collective. */
PetscErrorCode shell_vectors_gather(const struct shell_vectors *vectors, Vec from, double *whole);

/** Each rank gets its part of the sum. Collective. */
PetscErrorCode shell_vectors_scatter_sum(const struct shell_vectors *vectors, const double *whole, Vec to);

#endif

/** What the libraries with MPI share: errors as failures, and a communicator of their own. */
#pragma once

#include <mpi.h>

#include "base/failure.h"
#include "base/wait.h"

/** The result of an MPI call. SUPPLY_OK, or _SYSTEM with MPI's text. */
supply_status_t supply__mpi_check(int error, const char *call, struct failure *failure);

/**
 * This process's number in the communicator, and how many there are. Before MPI_Init() and after MPI_Finalize() MPI
 * would end the program. SUPPLY_OK, or _SYSTEM, _ARGUMENT.
 */
supply_status_t supply__mpi_rank(MPI_Comm comm, const char *caller, int *rank, int *ranks, struct failure *failure);

/** Whether an operation is complete. SUPPLY_OK, SUPPLY_AGAIN, or _SYSTEM. */
supply_status_t supply__mpi_test(MPI_Request *request, struct failure *failure);

/**
 * Duplicates a communicator, so that the library's messages do not meet those of the program. MPI errors of the copy
 * are returned. Collective; waits for the other processes until the limit. If supply__mpi_is_pending() then, *copy must
 * stay where it is: MPI may still write to it, for ever. absent: what another process has not done then, as
 * "called supply_open()". SUPPLY_OK, or _SYSTEM, _TIMEOUT, SUPPLY_INTERRUPTED.
 */
supply_status_t supply__mpi_duplicate(MPI_Comm comm, MPI_Comm *copy, const struct wait_limit *limit, const char *absent,
                                      struct failure *failure);

/** Whether a duplication that returned this status is still under way: MPI cannot cancel it. */
static inline bool supply__mpi_is_pending(supply_status_t status) {
    return status == SUPPLY_ERROR_TIMEOUT || status == SUPPLY_INTERRUPTED;
}

/** Frees the copy, unless the program has called MPI_Finalize(): the copy is gone then. */
void supply__mpi_free(MPI_Comm *copy);

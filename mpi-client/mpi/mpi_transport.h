/** The transport over MPI, for libsupply_exchange, libsupply_remote and supply-feeder. */
#pragma once

#include <mpi.h>

#include "transport.h"

/** The result of an MPI call. SUPPLY_OK, or _SYSTEM with MPI's text. */
supply_status_t supply__mpi_check(int error, const char *call, struct failure *failure);

/**
 * This process's number in the communicator, and how many there are. Before MPI_Init() and after MPI_Finalize() MPI
 * would end the program. SUPPLY_OK, or _SYSTEM, _ARGUMENT.
 */
supply_status_t supply__mpi_rank(MPI_Comm comm, const char *caller, int *rank, int *ranks, struct failure *failure);

/**
 * A transport over a copy of the communicator, so that its messages do not meet those of the program. Errors of the
 * copy are returned. Collective; waits for the other processes until the limit. call: of the program. SUPPLY_OK, or
 * _SYSTEM, _TIMEOUT, _MEMORY, _ARGUMENT, SUPPLY_INTERRUPTED.
 */
supply_status_t supply__mpi_transport(struct transport *transport, MPI_Comm comm, const struct wait_limit *limit,
                                      const char *call, struct failure *failure);

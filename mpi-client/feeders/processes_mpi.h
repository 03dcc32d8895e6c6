/** The processes of a communicator of MPI, for supply_remote_open() and supply-feeder. */
#pragma once

#include "mpi_transport.h"
#include "processes.h"

/**
 * Makes a transport over the communicator, and tells all processes what this one is: remote_meet(). Collective; waits
 * for the others until the limit. SUPPLY_OK, or _SYSTEM, _TIMEOUT, _MEMORY, _ARGUMENT, SUPPLY_INTERRUPTED.
 */
supply_status_t remote_mpi_meet(struct transport *transport, struct processes *processes, MPI_Comm comm, bool is_feeder,
                                const struct wait_limit *limit, struct failure *failure);

/** The transport over MPI, for libsupply_exchange. */
#pragma once

#include <mpi.h>

#include "base/wait.h"
#include "transport.h"

/**
 * A transport over a copy of the communicator, so that its messages do not meet those of the program. Errors of the
 * copy are returned. Collective; waits for the other processes until the limit. call: of the program. SUPPLY_OK, or
 * _SYSTEM, _TIMEOUT, _MEMORY, _ARGUMENT, SUPPLY_INTERRUPTED.
 */
supply_status_t supply__mpi_transport(struct transport *transport, MPI_Comm comm, const struct wait_limit *limit,
                                      const char *call, struct failure *failure);

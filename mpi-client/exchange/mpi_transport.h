/** The transport over MPI. */
#ifndef SUPPLY_MPI_TRANSPORT_H
#define SUPPLY_MPI_TRANSPORT_H

#include <mpi.h>

#include "poll_pause.h"
#include "transport.h"

/**
 * Duplicates the communicator, so that the exchange's messages do not meet those of the program. Collective; waits for
 * the other ranks until the limit. SUPPLY_OK, or _SYSTEM, _TIMEOUT, _MEMORY, SUPPLY_INTERRUPTED.
 */
supply_status_t exchange_mpi_transport(struct transport *transport, MPI_Comm comm, const struct poll_limit *limit,
                                       struct failure *failure);

#endif

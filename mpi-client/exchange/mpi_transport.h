/** The transport over MPI. */
#ifndef SUPPLY_MPI_TRANSPORT_H
#define SUPPLY_MPI_TRANSPORT_H

#include <mpi.h>

#include "transport.h"

/**
 * Duplicates the communicator, so that the exchange's messages do not meet those of the program. Collective; waits for
 * the other ranks at most `seconds`. SUPPLY_OK, or _SYSTEM, _TIMEOUT, _MEMORY.
 */
supply_status_t exchange_mpi_transport(struct transport *transport, MPI_Comm comm, double seconds,
                                       struct failure *failure);

#endif

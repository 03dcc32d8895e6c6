/** The link over MPI. */
#ifndef SUPPLY_MPI_LINK_H
#define SUPPLY_MPI_LINK_H

#include <mpi.h>

#include "link.h"

/**
 * Duplicates the communicator, so that messages of feeders do not meet those of the program. Collective; waits for the
 * other processes at most `seconds`. SUPPLY_OK, or _SYSTEM, _TIMEOUT, _MEMORY.
 */
supply_status_t remote_mpi_link(struct link *link, MPI_Comm comm, double seconds, struct failure *failure);

#endif

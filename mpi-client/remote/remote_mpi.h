/** The processes of a communicator, over MPI: for supply_remote_open() and supply-feeder. */
#ifndef SUPPLY_REMOTE_MPI_H
#define SUPPLY_REMOTE_MPI_H

#include "mpi_link.h"
#include "processes.h"

/**
 * Makes a link, and tells all processes what this one is. Waits for the others at most `seconds`. Collective.
 * SUPPLY_OK, or a failure of remote_mpi_link() or remote_meet().
 */
supply_status_t remote_mpi_meet(struct link *link, struct processes *processes, MPI_Comm comm, bool is_feeder,
                                double seconds, struct failure *failure);

#endif

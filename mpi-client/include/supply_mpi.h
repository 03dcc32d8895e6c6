/** libsupply for programs with MPI: the only file here that needs MPI, header-only. */
#ifndef SUPPLY_MPI_H
#define SUPPLY_MPI_H

#include <mpi.h>

#include "supply.h"

/**
 * Fills local_rank (by MPI_Comm_split_type, MPI_COMM_TYPE_SHARED), rank and ranks of the options.
 * Collective over the communicator, which must span the job as MPI_COMM_WORLD does; its order
 * gives the ranks. Returns an MPI error code.
 */
static inline int supply_options_from_comm(supply_options_t *options, MPI_Comm comm) {
    MPI_Comm node;
    int code = MPI_Comm_size(MPI_COMM_WORLD, &options->ranks);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_rank(comm, &options->rank);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, options->rank, MPI_INFO_NULL, &node);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_rank(node, &options->local_rank);
    int freed = MPI_Comm_free(&node);
    return code != MPI_SUCCESS ? code : freed;
}

/**
 * supply_open() with the ranks of the communicator, and everything else from the environment. Collective. If it fails,
 * each later call on the handle fails with its status and text. NULL: no memory, of which supply_finish() tells, too.
 */
static inline supply_t *supply_open_mpi(MPI_Comm comm) {
    supply_options_t options;
    supply_t *supply;
    supply_options_init(&options);
    supply_options_from_comm(&options, comm);
    supply_open(&supply, &options);
    return supply;
}

#endif

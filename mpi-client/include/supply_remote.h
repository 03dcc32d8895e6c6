/**
 * libsupply_remote: MPI ranks on nodes without Spark read what feeders send them from nodes with Spark.
 *
 *     mpirun -n 2 --host cpu-1:1,cpu-2:1 supply-feeder : -n 8 --host gpu-1:4,gpu-2:4 ./train
 *
 *     MPI_Comm ranks;
 *     supply_t *supply;
 *     if (supply_remote_open(&supply, MPI_COMM_WORLD, NULL, &ranks) != SUPPLY_OK) die(supply_error(supply));
 *     // from here on supply_next(), supply_column(), … as with a pair on this node, and `ranks` for collectives
 *     supply_close(supply);
 *
 * A feeder is a process of the same MPI job that runs supply-feeder on a node with Spark. It opens pairs there, and
 * sends their blocks to the ranks. docs/FEEDERS.md is the guide.
 */
#ifndef SUPPLY_REMOTE_H
#define SUPPLY_REMOTE_H

#include <mpi.h>

#include "supply.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens the data of this rank. If processes of the communicator are feeders, they open the rank's pairs, and send their
 * blocks. If none is, the call is supply_open() with the pair of this node, so that a program works in both ways.
 *
 * Collective over the communicator, which must have all ranks and all feeders of the job: MPI_COMM_WORLD. *ranks
 * becomes a new communicator of the ranks, without the feeders. Use it instead of MPI_COMM_WORLD for everything else,
 * also for supply_exchange_open(). Free it with MPI_Comm_free(). If the call fails before it has made the communicator,
 * *ranks is MPI_COMM_NULL.
 *
 * options may be NULL. With feeders, the handle's pairs have the paths, the ring and the group that the feeder's node
 * sets. Of the options, timeout, interrupted, position and exchange count.
 *
 * What differs from a pair on this node:
 * - Feeders serve one handle of each rank in a job. A second call returns _ARGUMENT.
 * - Data moves while the program waits for a block, or is in another MPI call.
 * - supply_fd() is -1. supply_result_open() fails: results are files on Spark's node.
 * - If Spark is slow, a wait ends after one and a half timeouts at most; if a feeder does not answer, after two.
 * - With more feeders than ranks, a rank reads several pairs, block by block in turn. It passes over one that has no
 *   block yet, unless options.exchange is true: so the order can be another one in each run. supply_counts() is never
 *   known then, and positions exist at the ends of epochs only: supply_position_save() returns _ARGUMENT elsewhere.
 * - supply_close() and supply_abort() wait until the feeders have received what they must know: supply_close() for two
 *   timeouts at most, also before the end of the data; supply_abort() for 5 seconds.
 * - Close the handle before MPI_Finalize(). Otherwise MPI_Finalize() closes the pairs, and Spark's run fails unless the
 *   rank has received everything.
 * - MPI calls come from the thread that uses the handle, or from that of an exchange (supply_exchange_open()):
 *   MPI_THREAD_SINGLE is enough.
 *
 * On failure *supply is a handle that only supply_error(), supply_error_errno() and supply_close() accept. SUPPLY_OK;
 * the failures of supply_open(), here or at the feeder; _TIMEOUT (a process did not call, or a feeder does not answer);
 * _SYSTEM (MPI failed); _ARGUMENT (processes with different versions of the library); SUPPLY_INTERRUPTED.
 */
SUPPLY_API supply_status_t supply_remote_open(supply_t **supply, MPI_Comm comm, const supply_options_t *options,
                                              MPI_Comm *ranks);

#ifdef __cplusplus
}
#endif

#endif

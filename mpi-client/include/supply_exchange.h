/**
 * libsupply_exchange: MPI ranks exchange the elements that Spark supplies.
 *
 *     supply_options_t options;
 *     supply_options_init(&options);
 *     options.exchange = true;
 *     supply_t *supply;
 *     if (supply_open(&supply, &options) != SUPPLY_OK) die(supply_error(supply));
 *     if (supply_exchange_open(&supply, MPI_COMM_WORLD, NULL) != SUPPLY_OK) die(supply_error(supply));
 *     // from here on supply_next(), supply_column(), … as without an exchange
 *     supply_close(supply);
 *
 * Each rank gathers a window: its next elements. The policy gives each element of the window a rank. All ranks then
 * exchange their windows, and each reads what it has received as blocks in memory of its own. The next window is
 * gathered while the data moves. Each element reaches exactly one rank in each epoch. docs/EXCHANGE.md is the guide.
 *
 * All ranks of the communicator must read: each supply_next() may need the others. Only calls that wait for a block
 * make progress. A rank waits for the others for at most twice the time limit of its pair, because the others may wait
 * for Spark for once that limit. If a rank fails, all ranks fail with its text.
 *
 * If another rank does not take part, this one returns SUPPLY_ERROR_TIMEOUT and cannot tell the others. To continue,
 * call supply_next() again. To stop, print supply_error() and call MPI_Abort(): the others may wait for this rank in a
 * collective call, of the exchange or of the program.
 */
#ifndef SUPPLY_EXCHANGE_H
#define SUPPLY_EXCHANGE_H

#include <mpi.h>

#include "supply.h"
#include "supply_exchange_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Turns the handle of a pair into a handle of exchanged elements. *supply must be open with options.exchange, and
 * nothing may have been received from it. The call replaces *supply: use and close only the new handle, which owns the
 * pair. options may be NULL: as Spark says (SUPPLY_EXCHANGE_AS_SUPPLIED).
 *
 * Collective over the communicator, which must have all ranks of the job. The call copies it.
 *
 * If MPI is initialized with MPI_THREAD_MULTIPLE, a thread of the library moves the elements of the next block while
 * the program computes, and calls MPI then. It ends when the handle is closed, or in MPI_Finalize(). Signals are
 * blocked in it, and it calls nothing of the program. Otherwise elements move, and MPI is called, only in calls of the
 * handle's functions.
 *
 * The blocks of the new handle are numbered from 0. supply_block_t.partition is the window's number within the epoch,
 * first_element the index of the block's first element among those that this rank receives in the window; with RANGE
 * partition is 0, and first_element the index in the rank's part of the epoch. Columns of
 * views ("vz") arrive as columns of bytes ("z"). supply_fd() is -1, and supply_counts() is never known.
 * supply_result_open() works with the new handle.
 *
 * supply_position_save() and supply_position_after() return positions of the exchange: all ranks must save at the same
 * step, and resume with the same number of ranks, options and window. Open the pairs with these positions, and then the
 * exchange. A position after the end of an epoch does not depend on the exchange.
 *
 * On failure *supply is still the handle of the pair, supply_error() has the text, and the pair can only be closed.
 * After _TIMEOUT and SUPPLY_INTERRUPTED the copy of the communicator is still pending, because MPI cannot cancel it.
 * Call MPI_Abort() then: MPI_Finalize() may wait for it for ever (Open MPI does).
 *
 * SUPPLY_OK, or, on all ranks: _ARGUMENT (bad options, or ranks whose options or positions differ), _TIMEOUT (a rank
 * did not call), _SYSTEM (MPI failed), _MEMORY, SUPPLY_INTERRUPTED.
 */
SUPPLY_API supply_status_t supply_exchange_open(supply_t **supply, MPI_Comm comm,
                                                const supply_exchange_options_t *options);

#ifdef __cplusplus
}
#endif

#endif

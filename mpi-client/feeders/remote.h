/** The rank's side of feeders without MPI: libsupply_remote and the Python package open it with transports of their
 * own. */
#pragma once

#include "processes.h"

/**
 * supply_remote_open() over a transport and the processes of remote_meet(), among which are feeders. The call takes
 * both over, also on failure. Opens this rank's pairs on the feeders. On failure *supply is a handle that is not open.
 */
supply_status_t supply__remote_over(supply_t **supply, const struct transport *transport, struct processes *processes,
                                    const supply_options_t *options);

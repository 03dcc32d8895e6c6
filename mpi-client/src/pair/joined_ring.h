/** A reader that is not the first of its group finds the ring of the first ("Readers of one ring" of PROTOCOL.md). */
#pragma once

#include "base/failure.h"
#include "files/options.h"

/**
 * Waits, at most the time limit, until reader 0 has opened its pair, and no task has attached to it. *ring_fd is then
 * its mapped file, for reading, and the settings have its generation and the sizes of its ring. SUPPLY_OK, or _TIMEOUT,
 * SUPPLY_INTERRUPTED, _CONFIG (no safe file), _CONTRACT (its header), _SYSTEM, _MEMORY.
 */
supply_status_t supply__ring_join(int *ring_fd, struct settings *settings, struct failure *failure);

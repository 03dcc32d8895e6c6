/** The feeder's side without MPI: supply-feeder and the Python package run it with transports of their own. */
#pragma once

#include "processes.h"

/** What a feeder has sent. */
struct fed {
    uint64_t elements;
    uint64_t bytes;
    uint32_t failed; /**< pairs that have failed; not those that their ranks stopped early */
};

/**
 * Opens the pairs of this process when their ranks ask for it, and sends their blocks until all are closed. options: as
 * of supply_open(), for the config files, the group and interrupted(); local_rank and rank must not be set. log, which
 * may be NULL, gets a line for each pair that fails, or is stopped early. SUPPLY_OK, also if pairs have failed; or
 * _SYSTEM (the transport), _TIMEOUT (a rank does not receive any more: pairs are still open, and only the end of the
 * process closes them), SUPPLY_INTERRUPTED, _MEMORY. The transport stays the caller's.
 */
supply_status_t supply__feed_over(const struct transport *transport, const struct processes *processes,
                                  const supply_options_t *options, void (*log)(const char *line), struct fed *fed,
                                  struct failure *failure);

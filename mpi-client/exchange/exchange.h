/** How an exchange is opened over a transport, without MPI. */
#pragma once

#include "supply_exchange_options.h"
#include "transport.h"

/** Seconds: stands for the time limit of a pair that is not open and cannot say it. */
#define EXCHANGE_TIMEOUT_WITHOUT_PAIR 120

/**
 * supply_exchange_open() over a transport, which the call copies and takes over, also on failure. Collective: compares
 * the options of all ranks before it returns.
 */
supply_status_t supply__exchange_over(supply_t **supply, const struct transport *transport,
                                      const supply_exchange_options_t *options);

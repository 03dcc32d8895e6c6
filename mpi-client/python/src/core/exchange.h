/** The options of an exchange, as Python has them. */
#pragma once

#include <string>

#include "calls.h"
#include "supply_exchange_options.h"

struct ExchangeOptions {
    supply_exchange_policy_t policy;
    std::string column; /**< "": not set */
    bool nulls_together;
    double fraction;
    uint64_t seed;
    size_t window_bytes;
    size_t memory_bytes;
    std::string spill_folder; /**< "": not set */
    bool messages_only;
};

/** supply__exchange_over(). Without the interpreter's lock. */
supply_status_t open_exchange(Calls &transport, supply_t **supply, const ExchangeOptions &options);

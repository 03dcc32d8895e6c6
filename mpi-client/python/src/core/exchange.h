/** The exchange between ranks over a transport in Python (supply/exchange.py says which methods it must have). */
#pragma once

#include <string>

#include "calls.h"
#include "supply_exchange_options.h"

struct transport;
struct part;

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

/** Calls the transport. */
class Exchange : public Calls {
  public:
    explicit Exchange(nanobind::object transport);

    /** supply__exchange_over(). Without the interpreter's lock. */
    supply_status_t open(supply_t **supply, const ExchangeOptions &options);

    /** A pause between two calls of supply_try_next(), without the interpreter's lock. It grows if nothing happens. */
    void pause();

  private:
    static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, failure *failure);
    static supply_status_t alltoall(void *context, const void *send, void *receive, size_t bytes, failure *failure);
    static supply_status_t alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                     const part *receive_parts, failure *failure);
    static supply_status_t poll(void *context, failure *failure);
    static Exchange &of(void *context) { return static_cast<Exchange &>(in(context)); }

    supply_status_t begin(failure *failure, const char *operation, const Call &call);
    nanobind::list tuples(const part *parts) const;

    const int rank_, ranks_;
    unsigned yields_ = 0, pause_microseconds_;
};

/** A transport whose operations have a time limit. */
#ifndef SUPPLY_EXCHANGE_COLLECTIVE_H
#define SUPPLY_EXCHANGE_COLLECTIVE_H

#include "clock.h"
#include "transport.h"

struct collective {
    struct transport transport;
    const char *name; /**< of the pair, for messages */
    double limit;     /**< seconds of one operation */
    int64_t end;      /**< of the operation's time (supply_clock) */
    bool is_pending;  /**< an operation is under way */
    int64_t polled;   /**< when it was polled last */
    bool is_extended; /**< this rank was away, for which its time was extended once */
};

/** Begin an operation. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_allgather(struct collective *collective, const void *send, void *receive, size_t bytes,
                                   struct failure *failure);
supply_status_t exchange_alltoall(struct collective *collective, const void *send, void *receive, size_t bytes,
                                  struct failure *failure);
supply_status_t exchange_alltoallv(struct collective *collective, const void *send, const struct part *send_parts,
                                   void *receive, const struct part *receive_parts, struct failure *failure);

/**
 * SUPPLY_OK: complete. SUPPLY_AGAIN: not yet. _SYSTEM; _TIMEOUT: another rank does not take part; the operation is
 * still under way, and the next call waits for it as long again.
 */
supply_status_t exchange_poll(struct collective *collective, struct failure *failure);

#endif

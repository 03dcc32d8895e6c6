/**
 * The collective operations of an exchange: on one level, over the transport of all ranks; or on two, if it has a grid
 * of nodes with equally many ranks. Then each rank sends what all ranks of another node need to one of them, and the
 * others read it in that one's memory (levels.h). And the time limit that every wait for other ranks has.
 */
#pragma once

#include "levels.h"

/** What is under way. */
enum collective_kind { COLLECTIVE_NONE, COLLECTIVE_ALLGATHER, COLLECTIVE_ALLTOALL, COLLECTIVE_SEND, COLLECTIVE_MOVE };

struct collective {
    struct transport transport; /**< of all ranks */
    struct levels levels;
    const char *name; /**< of the pair, for messages */
    double limit;     /**< seconds of one operation */
    int64_t end;      /**< of the operation's time (supply__clock_now) */
    enum collective_kind kind;
    int operation;    /**< of the transport; NO_OPERATION: none is under way */
    void *receive;    /**< of the operation under way */
    size_t bytes;     /**< of each piece of it */
    uint32_t sender;  /**< of COLLECTIVE_SEND */
    int64_t polled;   /**< when it was polled last */
    uint64_t begun;   /**< operations */
    bool is_extended; /**< this rank was away, for which its time was extended once */
};

/* Begin an operation. SUPPLY_OK, or _SYSTEM. */

/** `receive` gets the bytes of each rank, in the order of ranks. */
supply_status_t exchange_allgather(struct collective *collective, const void *send, void *receive, size_t bytes,
                                   struct failure *failure);

/** Each rank gets a piece of its own of each other one. */
supply_status_t exchange_alltoall(struct collective *collective, const void *send, void *receive, size_t bytes,
                                  struct failure *failure);

/** One rank sends to all others. `receive` has space for the bytes on all of them; they are SCHEMA_BYTES_MAX at most.
 */
supply_status_t exchange_send_all(struct collective *collective, uint32_t sender, const void *send, void *receive,
                                  size_t bytes, struct failure *failure);

/**
 * A message to each rank. send_parts: follow each other in the order of levels.order; empty for those to which this
 * rank copies. receive: for the messages of all ranks, on one level; receive_bytes: of each rank.
 */
supply_status_t exchange_move(struct collective *collective, const void *send, const struct part *send_parts,
                              void *receive, const uint64_t *receive_bytes, struct failure *failure);

/** The message of a rank, until the next operation begins. NULL: another rank has said that it is where it cannot be.
 */
const uint8_t *exchange_message(const struct collective *collective, uint32_t rank, uint64_t bytes);

/**
 * SUPPLY_OK: complete. SUPPLY_AGAIN: not yet. _SYSTEM; _TIMEOUT: another rank does not take part; the operation is
 * still under way, and the next call waits for it as long again.
 */
supply_status_t exchange_poll(struct collective *collective, struct failure *failure);

/**
 * A wait for neighbours without an operation has the same limit. Begin it, and then say whether it is over: SUPPLY_OK,
 * SUPPLY_AGAIN, or _TIMEOUT, as exchange_poll(); or _SYSTEM: neighbours->lost has died.
 */
void exchange_begin_wait(struct collective *collective);
supply_status_t exchange_wait(struct collective *collective, bool is_over, struct failure *failure);

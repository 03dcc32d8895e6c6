/**
 * Messages between processes, for feeders and the ranks that they supply: over MPI (mpi_link.c), over Python's mpi4py,
 * and over threads in tests. An operation is begun, and then tested until it is complete. Many may be under way.
 */
#pragma once

#include "base/failure.h"

/** No operation. */
#define LINK_NONE (-1)

/**
 * The functions return SUPPLY_OK or _SYSTEM with the failure's text. Those that begin an operation store its number.
 * Buffers belong to the caller, and must stay as they are until test() has returned SUPPLY_OK. Between two processes,
 * messages with one tag arrive in the order in which they were sent.
 */
struct link {
    int process; /**< number of this process, from 0 */
    int processes;
    void *context;

    /** Sends to a process. Complete when the receiver has begun to receive (MPI_Issend). */
    supply_status_t (*send)(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                            struct failure *failure);

    /** Receives the next message of a process with that tag, of at most `bytes` bytes (MPI_Irecv). */
    supply_status_t (*receive)(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                               struct failure *failure);

    /** Sends `bytes` bytes to each process; receives processes × bytes, in the order of processes. */
    supply_status_t (*allgather)(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                 struct failure *failure);

    /** SUPPLY_OK: the operation is complete, and its number is free; SUPPLY_AGAIN: not yet; _SYSTEM: it failed. Gives
     * MPI a chance to move data. */
    supply_status_t (*test)(void *context, int operation, struct failure *failure);

    /**
     * Calls end(argument) when the program ends its messages (MPI_Finalize), while they still work, unless the link is
     * freed before. NULL: this link knows no such end.
     */
    void (*on_end)(void *context, void (*end)(void *argument), void *argument);

    /**
     * Frees the context; `pending`: operations are under way, and may never complete. The link then keeps what they may
     * still use; its caller must do the same.
     */
    void (*free)(void *context, bool pending);
};

/** As test(), and sets *operation to LINK_NONE when it is complete. LINK_NONE is complete. */
static inline supply_status_t remote_test(const struct link *link, int *operation, struct failure *failure) {
    if (*operation == LINK_NONE) return SUPPLY_OK;
    const supply_status_t status = link->test(link->context, *operation, failure);
    if (status == SUPPLY_OK) *operation = LINK_NONE;
    return status;
}

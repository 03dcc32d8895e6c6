/**
 * Operations between processes, for the exchange: over MPI (mpi_transport.c), over Python's mpi4py and
 * torch.distributed, and over threads in tests. An operation is begun, and then tested until it is complete. All
 * processes begin the same collective operations in the same order.
 */
#pragma once

#include "base/failure.h"

/** No operation. */
#define NO_OPERATION (-1)

/** Bytes of one process in a buffer of alltoallv. Both are below 2 GiB. */
struct part {
    size_t offset; /**< from the buffer's start */
    size_t bytes;
};

/**
 * The functions return SUPPLY_OK or _SYSTEM with the failure's text. Those that begin an operation store its number.
 * Buffers belong to the caller, and must stay as they are until test() has returned SUPPLY_OK.
 */
struct transport {
    int rank; /**< number of this process, from 0 */
    int ranks;
    bool any_thread; /**< any thread may call the functions, one at a time; false: only the one that opened */
    void *context;

    /** Sends `bytes` bytes to each process; receives ranks × bytes, in the order of ranks. */
    supply_status_t (*allgather)(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                 struct failure *failure);

    /** Sends ranks × bytes, one piece to each rank; receives as much, in the order of ranks. */
    supply_status_t (*alltoall)(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                struct failure *failure);

    /**
     * Sends and receives one part for each rank; the arrays have `ranks` elements, and stay as the buffers do. Received
     * parts follow each other in the order of ranks, from the buffer's start. Parts that are sent may be the same
     * bytes. One is under way at most.
     */
    supply_status_t (*alltoallv)(void *context, const void *send, const struct part *send_parts, void *receive,
                                 const struct part *receive_parts, int *operation, struct failure *failure);

    /**
     * SUPPLY_OK: the operation is complete, and its number is free; SUPPLY_AGAIN: not yet; _SYSTEM: it failed. Gives
     * MPI a chance to move data, also with NO_OPERATION.
     */
    supply_status_t (*test)(void *context, int operation, struct failure *failure);

    /**
     * A transport among some ranks, in this order; `rank` is this process's number there. All of them call it, and wait
     * for one another. Free it before this one. NULL: this transport cannot.
     */
    supply_status_t (*split)(void *context, const int *of, int ranks, int rank, struct transport *part,
                             struct failure *failure);

    /**
     * Calls end(argument) when the program ends its messages (MPI_Finalize), while they still work, unless the
     * transport is freed before. NULL: this transport knows no such end.
     */
    void (*on_end)(void *context, void (*end)(void *argument), void *argument);

    /**
     * Frees the context; `pending`: operations are under way, and may never complete. The transport then keeps what
     * they may still use; its caller must do the same.
     */
    void (*free)(void *context, bool pending);
};

/** As test(), and sets *operation to NO_OPERATION when it is complete. NO_OPERATION is complete. */
static inline supply_status_t supply__transport_test(const struct transport *transport, int *operation,
                                                     struct failure *failure) {
    if (*operation == NO_OPERATION) return SUPPLY_OK;
    const supply_status_t status = transport->test(transport->context, *operation, failure);
    if (status == SUPPLY_OK) *operation = NO_OPERATION;
    return status;
}

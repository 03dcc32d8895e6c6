/**
 * Collective operations between ranks, for the exchange: over MPI (exchange_mpi.c), over Python's mpi4py or
 * torch.distributed, and over threads in tests; and how an exchange is opened over one, without MPI. An operation is
 * begun, and then polled until it is complete. At most one is under way. All ranks begin the same operations in the
 * same order.
 */
#ifndef SUPPLY_TRANSPORT_H
#define SUPPLY_TRANSPORT_H

#include "base/failure.h"
#include "supply_exchange_options.h"

/** Bytes of one rank in a buffer of alltoallv. Both are below 2 GiB. */
struct part {
    size_t offset; /**< from the buffer's start */
    size_t bytes;
};

/**
 * The functions return SUPPLY_OK or _SYSTEM with the failure's text. Buffers belong to the caller, and must stay as
 * they are until poll() has returned SUPPLY_OK.
 */
struct transport {
    int rank;
    int ranks;
    void *context;

    /** Sends `bytes` bytes to each rank; receives ranks × bytes, in the order of ranks. */
    supply_status_t (*allgather)(void *context, const void *send, void *receive, size_t bytes, struct failure *failure);

    /** Sends ranks × bytes, one piece to each rank; receives as much, in the order of ranks. */
    supply_status_t (*alltoall)(void *context, const void *send, void *receive, size_t bytes, struct failure *failure);

    /**
     * Sends and receives one part for each rank; the arrays have `ranks` elements, and stay as the buffers do. Received
     * parts follow each other in the order of ranks, from the buffer's start. Parts that are sent may be the same
     * bytes.
     */
    supply_status_t (*alltoallv)(void *context, const void *send, const struct part *send_parts, void *receive,
                                 const struct part *receive_parts, struct failure *failure);

    /** SUPPLY_OK: the operation is complete; SUPPLY_AGAIN: not yet; _SYSTEM: it failed. Gives MPI a chance to move
     * data. */
    supply_status_t (*poll)(void *context, struct failure *failure);

    /**
     * Frees the context; `pending`: an operation is under way, and will never complete. The transport then keeps what
     * the operation may still use; its caller must do the same.
     */
    void (*free)(void *context, bool pending);
};

/** Seconds: stands for the time limit of a pair that is not open and cannot say it. */
#define EXCHANGE_TIMEOUT_WITHOUT_PAIR 120

/**
 * supply_exchange_open() over a transport, which the call copies and takes over, also on failure. Collective: compares
 * the options of all ranks before it returns.
 */
supply_status_t supply__exchange_over(supply_t **supply, const struct transport *transport,
                                      const supply_exchange_options_t *options);

#endif

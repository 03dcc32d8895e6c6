/**
 * supply_exchange_open(): an exchange over MPI, with a duplicate of the program's communicator. MPI is called only from
 * the thread that uses the handle. MPI's errors are returned.
 */
#include <mpi.h>
#include <stdlib.h>

#include "communicator.h"
#include "api/filler.h"
#include "supply_exchange.h"
#include "transport.h"

struct mpi_context {
    MPI_Comm comm;
    MPI_Request request; /* of the operation that is under way */
    int ranks;
    /* Arguments of MPI_Ialltoallv, which must stay until it is complete. */
    int *send_counts, *send_offsets, *receive_counts, *receive_offsets;
};

static supply_status_t mpi_transport_allgather(void *context, const void *send, void *receive, size_t bytes,
                                               struct failure *failure) {
    struct mpi_context *mpi = context;
    return supply__mpi_check(
        MPI_Iallgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm, &mpi->request),
        "MPI_Iallgather", failure);
}

static supply_status_t mpi_alltoall(void *context, const void *send, void *receive, size_t bytes,
                                    struct failure *failure) {
    struct mpi_context *mpi = context;
    return supply__mpi_check(
        MPI_Ialltoall(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm, &mpi->request),
        "MPI_Ialltoall", failure);
}

static void mpi_split(const struct part *parts, int ranks, int *counts, int *offsets) {
    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = (int)parts[rank].bytes;
        offsets[rank] = (int)parts[rank].offset;
    }
}

static supply_status_t mpi_alltoallv(void *context, const void *send, const struct part *send_parts, void *receive,
                                     const struct part *receive_parts, struct failure *failure) {
    struct mpi_context *mpi = context;
    mpi_split(send_parts, mpi->ranks, mpi->send_counts, mpi->send_offsets);
    mpi_split(receive_parts, mpi->ranks, mpi->receive_counts, mpi->receive_offsets);
    return supply__mpi_check(MPI_Ialltoallv(send, mpi->send_counts, mpi->send_offsets, MPI_BYTE, receive,
                                            mpi->receive_counts, mpi->receive_offsets, MPI_BYTE, mpi->comm,
                                            &mpi->request),
                             "MPI_Ialltoallv", failure);
}

static supply_status_t mpi_poll_request(void *context, struct failure *failure) {
    return supply__mpi_test(&((struct mpi_context *)context)->request, failure);
}

static void mpi_free_arguments(struct mpi_context *mpi) {
    free(mpi->send_counts);
    free(mpi->send_offsets);
    free(mpi->receive_counts);
    free(mpi->receive_offsets);
    free(mpi);
}

static void mpi_transport_free(void *context, bool pending) {
    struct mpi_context *mpi = context;
    if (pending) return;
    supply__mpi_free(&mpi->comm);
    mpi_free_arguments(mpi);
}

/*
 * Duplicates the communicator, so that the exchange's messages do not meet those of the program. Collective; waits for
 * the other ranks until the limit. SUPPLY_OK, or _ARGUMENT, _SYSTEM, _TIMEOUT, _MEMORY, SUPPLY_INTERRUPTED.
 */
static supply_status_t mpi_transport(struct transport *transport, MPI_Comm comm, const struct wait_limit *limit,
                                     struct failure *failure) {
    int rank, ranks;
    TRY(supply__mpi_rank(comm, "supply_exchange_open()", &rank, &ranks, failure));
    struct mpi_context *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    *mpi = (struct mpi_context){
        .request = MPI_REQUEST_NULL,
        .ranks = ranks,
        .send_counts = calloc((size_t)ranks, sizeof(int)),
        .send_offsets = calloc((size_t)ranks, sizeof(int)),
        .receive_counts = calloc((size_t)ranks, sizeof(int)),
        .receive_offsets = calloc((size_t)ranks, sizeof(int)),
    };
    if (mpi->send_counts == NULL || mpi->send_offsets == NULL || mpi->receive_counts == NULL ||
        mpi->receive_offsets == NULL) {
        mpi_free_arguments(mpi);
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    supply_status_t status = supply__mpi_duplicate(comm, &mpi->comm, limit, "called supply_exchange_open()", failure);
    if (status != SUPPLY_OK) {
        if (!supply__mpi_is_pending(status)) mpi_free_arguments(mpi);
        return status;
    }
    *transport = (struct transport){.rank = rank,
                                    .ranks = ranks,
                                    .context = mpi,
                                    .allgather = mpi_transport_allgather,
                                    .alltoall = mpi_alltoall,
                                    .alltoallv = mpi_alltoallv,
                                    .poll = mpi_poll_request,
                                    .free = mpi_transport_free};
    return SUPPLY_OK;
}

supply_status_t supply_exchange_open(supply_t **supply, MPI_Comm comm, const supply_exchange_options_t *options) {
    struct transport transport;
    struct failure failure;
    supply_t *pair = supply != NULL ? *supply : NULL;
    struct filler_pair inspected = {.timeout = EXCHANGE_TIMEOUT_WITHOUT_PAIR};
    const bool is_open = supply__filler_inspect(pair, &inspected) == SUPPLY_OK;
    const struct wait_limit limit = {FILLER_LIMIT_FACTOR * inspected.timeout, inspected.interruption};
    const supply_status_t status = mpi_transport(&transport, comm, &limit, &failure);
    if (status == SUPPLY_OK) return supply__exchange_over(supply, &transport, options);
    if (is_open) supply__filler_fail(pair, &failure);
    return status;
}

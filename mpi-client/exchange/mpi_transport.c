#include "mpi_transport.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"

#define PAUSE_SECONDS 50e-6

struct mpi_context {
    MPI_Comm comm;
    MPI_Request request; /* of the operation that is under way */
    int ranks;
    /* Arguments of MPI_Ialltoallv, which must stay until it is complete. */
    int *send_counts, *send_places, *receive_counts, *receive_places;
};

static supply_status_t check(int error, const char *call, struct failure *failure) {
    if (error == MPI_SUCCESS) return SUPPLY_OK;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) text[0] = '\0';
    errno = EIO;
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "%s failed: %s", call, text);
}

static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes,
                                 struct failure *failure) {
    struct mpi_context *mpi = context;
    return check(MPI_Iallgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm, &mpi->request),
                 "MPI_Iallgather", failure);
}

static supply_status_t alltoall(void *context, const void *send, void *receive, size_t bytes, struct failure *failure) {
    struct mpi_context *mpi = context;
    return check(MPI_Ialltoall(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm, &mpi->request),
                 "MPI_Ialltoall", failure);
}

static void split(const struct part *parts, int ranks, int *counts, int *places) {
    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = (int)parts[rank].bytes;
        places[rank] = (int)parts[rank].offset;
    }
}

static supply_status_t alltoallv(void *context, const void *send, const struct part *send_parts, void *receive,
                                 const struct part *receive_parts, struct failure *failure) {
    struct mpi_context *mpi = context;
    split(send_parts, mpi->ranks, mpi->send_counts, mpi->send_places);
    split(receive_parts, mpi->ranks, mpi->receive_counts, mpi->receive_places);
    return check(MPI_Ialltoallv(send, mpi->send_counts, mpi->send_places, MPI_BYTE, receive, mpi->receive_counts,
                                mpi->receive_places, MPI_BYTE, mpi->comm, &mpi->request),
                 "MPI_Ialltoallv", failure);
}

static supply_status_t poll_request(void *context, struct failure *failure) {
    struct mpi_context *mpi = context;
    int is_complete = 0;
    const supply_status_t status = check(MPI_Test(&mpi->request, &is_complete, MPI_STATUS_IGNORE), "MPI_Test", failure);
    if (status != SUPPLY_OK) return status;
    return is_complete ? SUPPLY_OK : SUPPLY_AGAIN;
}

static void free_arguments(struct mpi_context *mpi) {
    free(mpi->send_counts);
    free(mpi->send_places);
    free(mpi->receive_counts);
    free(mpi->receive_places);
    free(mpi);
}

/* A program may have called MPI_Finalize() before it closes its handle. The communicator is gone then. */
static void free_context(void *context, bool pending) {
    struct mpi_context *mpi = context;
    if (pending) return;
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    if (!is_finalized) MPI_Comm_free(&mpi->comm);
    free_arguments(mpi);
}

static supply_status_t duplicate(struct mpi_context *mpi, MPI_Comm comm, double seconds, struct failure *failure) {
    const int64_t end = supply_clock_after(seconds);
    supply_status_t status = check(MPI_Comm_idup(comm, &mpi->comm, &mpi->request), "MPI_Comm_idup", failure);
    while (status == SUPPLY_OK) {
        const int64_t now = supply_clock_now();
        status = poll_request(mpi, failure);
        if (status != SUPPLY_AGAIN) break;
        if (now >= end)
            return supply_fail(failure, SUPPLY_ERROR_TIMEOUT,
                               "another rank has not called supply_exchange_open() for %g s", seconds);
        supply_clock_sleep(PAUSE_SECONDS);
        status = SUPPLY_OK;
    }
    if (status == SUPPLY_OK)
        status = check(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", failure);
    return status;
}

supply_status_t exchange_mpi_transport(struct transport *transport, MPI_Comm comm, double seconds,
                                       struct failure *failure) {
    int rank, ranks;
    supply_status_t status = check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank", failure);
    if (status == SUPPLY_OK) status = check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size", failure);
    if (status != SUPPLY_OK) return status;
    struct mpi_context *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    *mpi = (struct mpi_context){
        .request = MPI_REQUEST_NULL,
        .ranks = ranks,
        .send_counts = calloc((size_t)ranks, sizeof(int)),
        .send_places = calloc((size_t)ranks, sizeof(int)),
        .receive_counts = calloc((size_t)ranks, sizeof(int)),
        .receive_places = calloc((size_t)ranks, sizeof(int)),
    };
    if (mpi->send_counts == NULL || mpi->send_places == NULL || mpi->receive_counts == NULL ||
        mpi->receive_places == NULL) {
        free_arguments(mpi);
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    status = duplicate(mpi, comm, seconds, failure);
    /* After a time-out MPI may still write into the context: it stays. */
    if (status != SUPPLY_OK && status != SUPPLY_ERROR_TIMEOUT) free_arguments(mpi);
    *transport = (struct transport){.rank = rank,
                                    .ranks = ranks,
                                    .context = mpi,
                                    .allgather = allgather,
                                    .alltoall = alltoall,
                                    .alltoallv = alltoallv,
                                    .poll = poll_request,
                                    .free = free_context};
    return status;
}

#include "mpi_link.h"

#include <stdlib.h>

#include "communicator.h"

struct mpi_context {
    MPI_Comm comm;
    MPI_Request *requests; /* by number of the operation; MPI_REQUEST_NULL: the number is free */
    int capacity;
};

/* A free number. -1: no memory. */
static int reserve(struct mpi_context *mpi) {
    for (int i = 0; i < mpi->capacity; i++)
        if (mpi->requests[i] == MPI_REQUEST_NULL) return i;
    const int capacity = mpi->capacity > 0 ? 2 * mpi->capacity : 16;
    MPI_Request *requests = realloc(mpi->requests, (size_t)capacity * sizeof *requests);
    if (requests == NULL) return -1;
    for (int i = mpi->capacity; i < capacity; i++) requests[i] = MPI_REQUEST_NULL;
    const int number = mpi->capacity;
    mpi->requests = requests;
    mpi->capacity = capacity;
    return number;
}

static supply_status_t begin(struct mpi_context *mpi, int *operation, struct failure *failure) {
    *operation = reserve(mpi);
    return *operation >= 0 ? SUPPLY_OK : supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* A call that has failed leaves no operation. */
static supply_status_t check(int error, const char *call, int *operation, struct failure *failure) {
    if (error != MPI_SUCCESS) *operation = LINK_NONE;
    return supply_mpi_check(error, call, failure);
}

static supply_status_t send_message(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                                    struct failure *failure) {
    struct mpi_context *mpi = context;
    if (begin(mpi, operation, failure) != SUPPLY_OK) return failure->status;
    return check(MPI_Issend(buffer, (int)bytes, MPI_BYTE, to, tag, mpi->comm, &mpi->requests[*operation]), "MPI_Issend",
                 operation, failure);
}

static supply_status_t receive_message(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                                       struct failure *failure) {
    struct mpi_context *mpi = context;
    if (begin(mpi, operation, failure) != SUPPLY_OK) return failure->status;
    return check(MPI_Irecv(buffer, (int)bytes, MPI_BYTE, from, tag, mpi->comm, &mpi->requests[*operation]), "MPI_Irecv",
                 operation, failure);
}

static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                 struct failure *failure) {
    struct mpi_context *mpi = context;
    if (begin(mpi, operation, failure) != SUPPLY_OK) return failure->status;
    return check(MPI_Iallgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm,
                                &mpi->requests[*operation]),
                 "MPI_Iallgather", operation, failure);
}

static supply_status_t test(void *context, int operation, struct failure *failure) {
    struct mpi_context *mpi = context;
    return supply_mpi_test(&mpi->requests[operation], failure);
}

static void free_context(void *context, bool pending) {
    struct mpi_context *mpi = context;
    if (pending) return;
    supply_mpi_free(&mpi->comm);
    free(mpi->requests);
    free(mpi);
}

supply_status_t remote_mpi_link(struct link *link, MPI_Comm comm, double seconds, struct failure *failure) {
    *link = (struct link){
        .send = send_message, .receive = receive_message, .allgather = allgather, .test = test, .free = free_context};
    supply_status_t status = supply_mpi_check(MPI_Comm_rank(comm, &link->process), "MPI_Comm_rank", failure);
    if (status == SUPPLY_OK) status = supply_mpi_check(MPI_Comm_size(comm, &link->processes), "MPI_Comm_size", failure);
    if (status != SUPPLY_OK) return status;
    struct mpi_context *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    link->context = mpi;
    status = supply_mpi_duplicate(comm, &mpi->comm, seconds, "called supply_remote_open(), and is no feeder,", failure);
    /* After a timeout MPI may still write into the context: it stays. */
    if (status != SUPPLY_OK && status != SUPPLY_ERROR_TIMEOUT) free(mpi);
    return status;
}

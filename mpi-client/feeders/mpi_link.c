/**
 * Messages over MPI, on a duplicate of the program's communicator. MPI is called from one thread only. Whoever receives
 * a message checks it: arrivals.c, feeder.c and processes.c.
 */
#include "mpi_link.h"

#include <stdlib.h>
#include <unistd.h>

#include "communicator.h"

struct mpi_context {
    MPI_Comm comm;
    MPI_Request *requests; /* by number of the operation; MPI_REQUEST_NULL: the number is free */
    int capacity;
    int end_key; /* an attribute of MPI_COMM_SELF, which MPI_Finalize() deletes first; or MPI_KEYVAL_INVALID */
    void (*end)(void *argument);
    void *end_argument;
    pid_t process; /* a forked child that calls MPI_Finalize() must not end the messages of its parent */
};

/* A free number. -1: no memory. */
static int link_reserve(struct mpi_context *mpi) {
    for (int i = 0; i < mpi->capacity; i++)
        if (mpi->requests[i] == MPI_REQUEST_NULL) return i;
    const int capacity = mpi->capacity > 0 ? 2 * mpi->capacity : 16;
    MPI_Request *requests = (MPI_Request *)realloc((void *)mpi->requests, (size_t)capacity * sizeof *requests);
    if (requests == NULL) return -1;
    for (int i = mpi->capacity; i < capacity; i++) requests[i] = MPI_REQUEST_NULL;
    const int number = mpi->capacity;
    mpi->requests = requests;
    mpi->capacity = capacity;
    return number;
}

static supply_status_t link_begin(struct mpi_context *mpi, int *operation, struct failure *failure) {
    *operation = link_reserve(mpi);
    return *operation >= 0 ? SUPPLY_OK : supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* A call that has failed leaves no operation. */
static supply_status_t link_check(int error, const char *call, int *operation, struct failure *failure) {
    if (error != MPI_SUCCESS) *operation = LINK_NONE;
    return supply__mpi_check(error, call, failure);
}

static supply_status_t send_message(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                                    struct failure *failure) {
    struct mpi_context *mpi = context;
    if (link_begin(mpi, operation, failure) != SUPPLY_OK) return failure->status;
    return link_check(MPI_Issend(buffer, (int)bytes, MPI_BYTE, to, tag, mpi->comm, &mpi->requests[*operation]),
                      "MPI_Issend", operation, failure);
}

static supply_status_t receive_message(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                                       struct failure *failure) {
    struct mpi_context *mpi = context;
    if (link_begin(mpi, operation, failure) != SUPPLY_OK) return failure->status;
    return link_check(MPI_Irecv(buffer, (int)bytes, MPI_BYTE, from, tag, mpi->comm, &mpi->requests[*operation]),
                      "MPI_Irecv", operation, failure);
}

static supply_status_t link_allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                      struct failure *failure) {
    struct mpi_context *mpi = context;
    if (link_begin(mpi, operation, failure) != SUPPLY_OK) return failure->status;
    return link_check(MPI_Iallgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm,
                                     &mpi->requests[*operation]),
                      "MPI_Iallgather", operation, failure);
}

static supply_status_t test(void *context, int operation, struct failure *failure) {
    struct mpi_context *mpi = context;
    return supply__mpi_test(&mpi->requests[operation], failure);
}

static int end_messages(MPI_Comm self, int key, void *value, void *unused) {
    (void)self;
    (void)key;
    (void)unused;
    const struct mpi_context *mpi = value;
    if (mpi->end != NULL && mpi->process == getpid()) mpi->end(mpi->end_argument);
    return MPI_SUCCESS;
}

static void on_end(void *context, void (*end)(void *argument), void *argument) {
    struct mpi_context *mpi = context;
    mpi->end = end;
    mpi->end_argument = argument;
    mpi->process = getpid();
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_messages, &mpi->end_key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, mpi->end_key, mpi);
}

static void forget_end(struct mpi_context *mpi) {
    int is_finalized = 0;
    mpi->end = NULL;
    MPI_Finalized(&is_finalized);
    if (is_finalized || mpi->end_key == MPI_KEYVAL_INVALID) return;
    MPI_Comm_delete_attr(MPI_COMM_SELF, mpi->end_key);
    MPI_Comm_free_keyval(&mpi->end_key);
}

static void link_free(void *context, bool pending) {
    struct mpi_context *mpi = context;
    forget_end(mpi);
    if (pending) return;
    supply__mpi_free(&mpi->comm);
    free((void *)mpi->requests);
    free(mpi);
}

/* Duplicates the communicator, so that messages of feeders do not meet those of the program. */
static supply_status_t make_link(struct link *link, MPI_Comm comm, const struct wait_limit *limit,
                                 struct failure *failure) {
    *link = (struct link){.send = send_message,
                          .receive = receive_message,
                          .allgather = link_allgather,
                          .test = test,
                          .on_end = on_end,
                          .free = link_free};
    TRY(supply__mpi_rank(comm, "supply_remote_open()", &link->process, &link->processes, failure));
    struct mpi_context *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    mpi->end_key = MPI_KEYVAL_INVALID;
    link->context = mpi;
    supply_status_t status = supply__mpi_duplicate(comm, &mpi->comm, limit, "called supply_remote_open()", failure);
    if (status != SUPPLY_OK && !supply__mpi_is_pending(status)) free(mpi);
    return status;
}

supply_status_t remote_mpi_meet(struct link *link, struct processes *processes, MPI_Comm comm, bool is_feeder,
                                const struct wait_limit *limit, struct failure *failure) {
    char node[MPI_MAX_PROCESSOR_NAME];
    int length;
    TRY(make_link(link, comm, limit, failure));
    TRY(supply__mpi_check(MPI_Get_processor_name(node, &length), "MPI_Get_processor_name", failure));
    supply_status_t status = remote_meet(processes, link, is_feeder, node, limit, failure);
    if (status == SUPPLY_OK) return SUPPLY_OK;
    /* After other failures than of the arguments the meeting may be under way. */
    link->free(link->context, status != SUPPLY_ERROR_ARGUMENT);
    remote_processes_free(processes);
    return status;
}

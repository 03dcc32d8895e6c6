/**
 * Operations over MPI, on a duplicate of the program's communicator: made without a wait that nothing ends. MPI is
 * called by one thread at a time, and its errors are returned as texts. Whoever receives something checks it.
 */
#include "mpi_transport.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct mpi_context {
    MPI_Comm comm;
    MPI_Request *requests; /* by number of the operation; MPI_REQUEST_NULL: the number is free */
    int capacity;
    int ranks;
    int *parts;  /* of MPI_Ialltoallv, until it is complete: counts and offsets of what is sent, and received */
    int end_key; /* an attribute of MPI_COMM_SELF, which MPI_Finalize() deletes first; or MPI_KEYVAL_INVALID */
    void (*end)(void *argument);
    void *end_argument;
    pid_t process; /* a forked child that calls MPI_Finalize() must not end the messages of its parent */
};

/* The result of an MPI call. SUPPLY_OK, or _SYSTEM with MPI's text. */
static supply_status_t mpi_check(int error, const char *call, struct failure *failure) {
    if (error == MPI_SUCCESS) return SUPPLY_OK;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) text[0] = '\0';
    errno = EIO;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s failed: %s", call, text);
}

/* This process's number in the communicator, and how many there are. Before MPI_Init() and after MPI_Finalize() MPI
 * would end the program. SUPPLY_OK, or _SYSTEM, _ARGUMENT. */
static supply_status_t mpi_rank(MPI_Comm comm, const char *caller, int *rank, int *ranks, struct failure *failure) {
    int is_initialized = 0, is_finalized = 0;
    MPI_Initialized(&is_initialized);
    MPI_Finalized(&is_finalized);
    if (!is_initialized || is_finalized)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "%s: call it after MPI_Init() and before MPI_Finalize()",
                            caller);
    TRY(mpi_check(MPI_Comm_rank(comm, rank), "MPI_Comm_rank", failure));
    return mpi_check(MPI_Comm_size(comm, ranks), "MPI_Comm_size", failure);
}

/* A free number. SUPPLY_OK, or _MEMORY. */
static supply_status_t mpi_begin(struct mpi_context *mpi, int *operation, struct failure *failure) {
    for (*operation = 0; *operation < mpi->capacity; (*operation)++)
        if (mpi->requests[*operation] == MPI_REQUEST_NULL) return SUPPLY_OK;
    const int capacity = mpi->capacity > 0 ? 2 * mpi->capacity : 16;
    MPI_Request *requests = (MPI_Request *)realloc((void *)mpi->requests, (size_t)capacity * sizeof *requests);
    if (requests == NULL) {
        *operation = NO_OPERATION;
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    for (int i = mpi->capacity; i < capacity; i++) requests[i] = MPI_REQUEST_NULL;
    mpi->requests = requests;
    mpi->capacity = capacity;
    return SUPPLY_OK;
}

/* A call that has failed leaves no operation. */
static supply_status_t mpi_begun(int error, const char *call, int *operation, struct failure *failure) {
    if (error != MPI_SUCCESS) *operation = NO_OPERATION;
    return mpi_check(error, call, failure);
}

static supply_status_t mpi_allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                     struct failure *failure) {
    struct mpi_context *mpi = context;
    TRY(mpi_begin(mpi, operation, failure));
    return mpi_begun(MPI_Iallgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm,
                                    &mpi->requests[*operation]),
                     "MPI_Iallgather", operation, failure);
}

static supply_status_t mpi_alltoall(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                    struct failure *failure) {
    struct mpi_context *mpi = context;
    TRY(mpi_begin(mpi, operation, failure));
    return mpi_begun(
        MPI_Ialltoall(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, mpi->comm, &mpi->requests[*operation]),
        "MPI_Ialltoall", operation, failure);
}

static supply_status_t mpi_alltoallv(void *context, const void *send, const struct part *send_parts, void *receive,
                                     const struct part *receive_parts, int *operation, struct failure *failure) {
    struct mpi_context *mpi = context;
    int *counts = mpi->parts, *offsets = counts + mpi->ranks;
    int *counts_in = offsets + mpi->ranks, *offsets_in = counts_in + mpi->ranks;
    for (int rank = 0; rank < mpi->ranks; rank++) {
        counts[rank] = (int)send_parts[rank].bytes;
        offsets[rank] = (int)send_parts[rank].offset;
        counts_in[rank] = (int)receive_parts[rank].bytes;
        offsets_in[rank] = (int)receive_parts[rank].offset;
    }
    TRY(mpi_begin(mpi, operation, failure));
    return mpi_begun(MPI_Ialltoallv(send, counts, offsets, MPI_BYTE, receive, counts_in, offsets_in, MPI_BYTE,
                                    mpi->comm, &mpi->requests[*operation]),
                     "MPI_Ialltoallv", operation, failure);
}

static supply_status_t mpi_test(void *context, int operation, struct failure *failure) {
    struct mpi_context *mpi = context;
    int is_complete = 0;
    if (operation == NO_OPERATION)
        return mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi->comm, &is_complete, MPI_STATUS_IGNORE),
                         "MPI_Iprobe", failure);
    TRY(mpi_check(MPI_Test(&mpi->requests[operation], &is_complete, MPI_STATUS_IGNORE), "MPI_Test", failure));
    return is_complete ? SUPPLY_OK : SUPPLY_AGAIN;
}

static int mpi_end(MPI_Comm self, int key, void *value, void *unused) {
    (void)self;
    (void)key;
    (void)unused;
    const struct mpi_context *mpi = value;
    if (mpi->end != NULL && mpi->process == getpid()) mpi->end(mpi->end_argument);
    return MPI_SUCCESS;
}

static void mpi_on_end(void *context, void (*end)(void *argument), void *argument) {
    struct mpi_context *mpi = context;
    mpi->end = end;
    mpi->end_argument = argument;
    mpi->process = getpid();
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpi_end, &mpi->end_key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, mpi->end_key, mpi);
}

static void mpi_free_memory(struct mpi_context *mpi) {
    free((void *)mpi->requests);
    free(mpi->parts);
    free(mpi);
}

/* The communicator is gone if the program has called MPI_Finalize(). */
static void mpi_free(void *context, bool pending) {
    struct mpi_context *mpi = context;
    int is_finalized = 0;
    mpi->end = NULL;
    MPI_Finalized(&is_finalized);
    if (!is_finalized && mpi->end_key != MPI_KEYVAL_INVALID) {
        MPI_Comm_delete_attr(MPI_COMM_SELF, mpi->end_key);
        MPI_Comm_free_keyval(&mpi->end_key);
    }
    if (pending) return;
    if (!is_finalized) MPI_Comm_free(&mpi->comm);
    mpi_free_memory(mpi);
}

/* Waits until all processes have begun the operation, which they do by that call. SUPPLY_OK, or _SYSTEM, _TIMEOUT,
 * SUPPLY_INTERRUPTED: it may be under way. */
static supply_status_t mpi_await(const struct transport *transport, int *operation, const struct wait_limit *limit,
                                 const char *call, struct failure *failure) {
    struct wait wait = supply__wait_begin(*limit);
    supply_status_t status;
    while ((status = supply__transport_test(transport, operation, failure)) == SUPPLY_AGAIN) {
        const supply_status_t ended = supply__wait_more(&wait);
        if (ended == SUPPLY_ERROR_TIMEOUT)
            return supply__fail(failure, ended,
                                "another process has not called %s for %g s: has it failed, or does it not take part? "
                                "(SUPPLY_TIMEOUT)",
                                call, limit->seconds);
        if (ended == SUPPLY_INTERRUPTED)
            return supply__fail(failure, ended, "the program interrupted the wait until another process has called %s",
                                call);
    }
    return status;
}

/* Not MPI_Comm_dup(), which waits for ever. */
static supply_status_t mpi_duplicate(const struct transport *transport, MPI_Comm comm, const struct wait_limit *limit,
                                     const char *call, struct failure *failure) {
    struct mpi_context *mpi = transport->context;
    int operation;
    TRY(mpi_begin(mpi, &operation, failure));
    TRY(mpi_begun(MPI_Comm_idup(comm, &mpi->comm, &mpi->requests[operation]), "MPI_Comm_idup", &operation, failure));
    TRY(mpi_await(transport, &operation, limit, call, failure));
    return mpi_check(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", failure);
}

static struct mpi_context *mpi_context_of(int ranks, struct failure *failure) {
    struct mpi_context *mpi = calloc(1, sizeof *mpi);
    if (mpi != NULL) mpi->parts = calloc((size_t)ranks, 4 * sizeof *mpi->parts);
    if (mpi == NULL || mpi->parts == NULL) {
        free(mpi);
        supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    mpi->comm = MPI_COMM_NULL;
    mpi->ranks = ranks;
    mpi->end_key = MPI_KEYVAL_INVALID;
    return mpi;
}

static supply_status_t mpi_create_group(const struct mpi_context *mpi, const int *of, int ranks, MPI_Comm *comm,
                                        struct failure *failure) {
    MPI_Group all, some;
    TRY(mpi_check(MPI_Comm_group(mpi->comm, &all), "MPI_Comm_group", failure));
    supply_status_t status = mpi_check(MPI_Group_incl(all, ranks, of, &some), "MPI_Group_incl", failure);
    if (status == SUPPLY_OK) {
        status = mpi_check(MPI_Comm_create_group(mpi->comm, some, 0, comm), "MPI_Comm_create_group", failure);
        MPI_Group_free(&some);
    }
    MPI_Group_free(&all);
    if (status != SUPPLY_OK) return status;
    return mpi_check(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", failure);
}

static supply_status_t mpi_split(void *context, const int *of, int ranks, int rank, struct transport *part,
                                 struct failure *failure);

static const struct transport mpi_functions = {.allgather = mpi_allgather,
                                               .alltoall = mpi_alltoall,
                                               .alltoallv = mpi_alltoallv,
                                               .test = mpi_test,
                                               .split = mpi_split,
                                               .on_end = mpi_on_end,
                                               .free = mpi_free};

static supply_status_t mpi_split(void *context, const int *of, int ranks, int rank, struct transport *part,
                                 struct failure *failure) {
    struct mpi_context *mpi = mpi_context_of(ranks, failure);
    if (mpi == NULL) return failure->status;
    const supply_status_t status = mpi_create_group(context, of, ranks, &mpi->comm, failure);
    if (status != SUPPLY_OK) {
        mpi_free_memory(mpi);
        return status;
    }
    *part = mpi_functions;
    part->rank = rank;
    part->ranks = ranks;
    part->context = mpi;
    return SUPPLY_OK;
}

supply_status_t supply__mpi_transport(struct transport *transport, MPI_Comm comm, const struct wait_limit *limit,
                                      const char *call, struct failure *failure) {
    *transport = mpi_functions;
    TRY(mpi_rank(comm, call, &transport->rank, &transport->ranks, failure));
    int threads;
    TRY(mpi_check(MPI_Query_thread(&threads), "MPI_Query_thread", failure));
    transport->any_thread = threads == MPI_THREAD_MULTIPLE;
    struct mpi_context *mpi = mpi_context_of(transport->ranks, failure);
    if (mpi == NULL) return failure->status;
    transport->context = mpi;
    const supply_status_t status = mpi_duplicate(transport, comm, limit, call, failure);
    /* MPI cannot cancel a duplication: it may write to the context for ever. */
    if (status != SUPPLY_OK && status != SUPPLY_ERROR_TIMEOUT && status != SUPPLY_INTERRUPTED) mpi_free_memory(mpi);
    return status;
}

/**
 * What libraries over MPI share: duplicates of communicators without a wait that nothing ends, and MPI's errors as
 * texts. MPI is called from the caller's thread, and there is no lock.
 */
#include "communicator.h"

#include <errno.h>

supply_status_t supply__mpi_check(int error, const char *call, struct failure *failure) {
    if (error == MPI_SUCCESS) return SUPPLY_OK;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) text[0] = '\0';
    errno = EIO;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s failed: %s", call, text);
}

supply_status_t supply__mpi_rank(MPI_Comm comm, const char *caller, int *rank, int *ranks, struct failure *failure) {
    int is_initialized = 0, is_finalized = 0;
    MPI_Initialized(&is_initialized);
    MPI_Finalized(&is_finalized);
    if (!is_initialized || is_finalized)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "%s: call it after MPI_Init() and before MPI_Finalize()",
                            caller);
    TRY(supply__mpi_check(MPI_Comm_rank(comm, rank), "MPI_Comm_rank", failure));
    return supply__mpi_check(MPI_Comm_size(comm, ranks), "MPI_Comm_size", failure);
}

supply_status_t supply__mpi_test(MPI_Request *request, struct failure *failure) {
    int is_complete = 0;
    const supply_status_t status =
        supply__mpi_check(MPI_Test(request, &is_complete, MPI_STATUS_IGNORE), "MPI_Test", failure);
    if (status != SUPPLY_OK) return status;
    return is_complete ? SUPPLY_OK : SUPPLY_AGAIN;
}

supply_status_t supply__mpi_duplicate(MPI_Comm comm, MPI_Comm *copy, const struct wait_limit *limit, const char *absent,
                                      struct failure *failure) {
    struct wait wait = supply__wait_begin(*limit);
    MPI_Request request;
    supply_status_t status = supply__mpi_check(MPI_Comm_idup(comm, copy, &request), "MPI_Comm_idup", failure);
    if (status == SUPPLY_OK) status = supply__mpi_test(&request, failure);
    while (status == SUPPLY_AGAIN) {
        const supply_status_t ended = supply__wait_more(&wait);
        if (ended == SUPPLY_ERROR_TIMEOUT)
            return supply__fail(
                failure, SUPPLY_ERROR_TIMEOUT,
                "another process has not %s for %g s: has it failed, or does it not take part? (SUPPLY_TIMEOUT)",
                absent, limit->seconds);
        if (ended == SUPPLY_INTERRUPTED)
            return supply__fail(failure, SUPPLY_INTERRUPTED,
                                "the program interrupted the wait until another process has %s", absent);
        status = supply__mpi_test(&request, failure);
    }
    if (status == SUPPLY_OK)
        status =
            supply__mpi_check(MPI_Comm_set_errhandler(*copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", failure);
    return status;
}

void supply__mpi_free(MPI_Comm *copy) {
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    if (!is_finalized) MPI_Comm_free(copy);
}

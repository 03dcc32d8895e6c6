/**
 * supply_remote_open(): a rank's pairs over MPI from feeders, or, if there is none, the pair of this node. Collective.
 * MPI is called from the thread that opens; the options come from the program, and are checked.
 */
#include "supply_remote.h"

#include <stdlib.h>

#include "api/filler.h"
#include "processes_mpi.h"
#include "files/options.h"
#include "remote.h"
#include "supply_mpi.h"

/* A communicator of the ranks. All have met, and call this next. members: a place for each process. */
static supply_status_t make_ranks(const struct processes *processes, MPI_Comm comm, int *members, MPI_Comm *ranks,
                                  struct failure *failure) {
    MPI_Group all, of_ranks;
    int count = 0;
    for (int i = 0; i < processes->count; i++)
        if (!processes->list[i].is_feeder) members[count++] = i;
    TRY(supply__mpi_check(MPI_Comm_group(comm, &all), "MPI_Comm_group", failure));
    TRY(supply__mpi_check(MPI_Group_incl(all, count, members, &of_ranks), "MPI_Group_incl", failure));
    supply_status_t status =
        supply__mpi_check(MPI_Comm_create_group(comm, of_ranks, 0, ranks), "MPI_Comm_create_group", failure);
    MPI_Group_free(&of_ranks);
    MPI_Group_free(&all);
    return status;
}

/* The pair of this node. */
static supply_status_t open_local(supply_t **supply, MPI_Comm ranks, const supply_options_t *given,
                                  struct failure *failure) {
    supply_options_t options = *given, place;
    supply_options_init(&place);
    const supply_status_t status =
        supply__mpi_check(supply_options_from_comm(&place, ranks), "MPI_Comm_split_type", failure);
    if (status != SUPPLY_OK) return status;
    if (options.rank < 0) options.rank = place.rank;
    if (options.local_rank < 0) options.local_rank = place.local_rank;
    options.ranks = place.ranks;
    return supply_open(supply, &options);
}

/* Feeders end when their pairs are closed. */
static bool have_feeders_served;

static supply_status_t open_any(supply_t **supply, MPI_Comm comm, const supply_options_t *given, int *members,
                                MPI_Comm *ranks, struct failure *failure) {
    struct transport transport;
    struct processes processes = {0};
    supply_options_t options;
    double timeout;
    if (have_feeders_served)
        return supply__fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "supply_remote_open: the feeders of this job have opened their pairs before, and can do so once");
    TRY(supply__options_complete(given, &options, failure));
    TRY(supply__options_timeout(&options, &timeout, failure));
    const struct wait_limit limit = {FILLER_LIMIT_FACTOR * timeout, {options.interrupted, options.interrupted_context}};
    TRY(remote_mpi_meet(&transport, &processes, comm, false, &limit, failure));
    supply_status_t status = make_ranks(&processes, comm, members, ranks, failure);
    have_feeders_served = processes.feeders > 0;
    if (status == SUPPLY_OK && have_feeders_served)
        return supply__remote_over(supply, &transport, &processes, &options);
    transport.free(transport.context, false);
    remote_processes_free(&processes);
    return status == SUPPLY_OK ? open_local(supply, *ranks, &options, failure) : status;
}

supply_status_t supply_remote_open(supply_t **supply, MPI_Comm comm, const supply_options_t *options, MPI_Comm *ranks) {
    struct failure failure = {0};
    if (supply == NULL || ranks == NULL) return SUPPLY_ERROR_ARGUMENT;
    *supply = NULL;
    *ranks = MPI_COMM_NULL;
    int rank, size = 0;
    supply_status_t status = supply__mpi_rank(comm, "supply_remote_open()", &rank, &size, &failure);
    /* In front of the meeting: after it the others wait for this process, without a limit of their own. */
    int *members = calloc((size_t)size, sizeof *members);
    if (members == NULL)
        status = supply__fail(&failure, SUPPLY_ERROR_MEMORY, "out of memory");
    else if (status == SUPPLY_OK)
        status = open_any(supply, comm, options, members, ranks, &failure);
    free(members);
    if (status != SUPPLY_OK && *supply == NULL) *supply = supply__filler_failed(&failure);
    return status;
}

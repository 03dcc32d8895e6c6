#include "ranks_of_call.h"

#include <inttypes.h>

/* MPI counts in 32 bits. */
#define PART ((size_t)1 << 27)

static int part_of(size_t count, size_t done) { return (int)(count - done < PART ? count - done : PART); }

void sum_over_ranks(supply_call_t *call, double *values, size_t count) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Allreduce(MPI_IN_PLACE, values + done, part_of(count, done), MPI_DOUBLE, MPI_SUM, supply_call_comm(call));
}

void sum_to_first(supply_call_t *call, double *values, size_t count) {
    const bool is_first = is_first_rank(call);
    for (size_t done = 0; done < count; done += PART)
        MPI_Reduce(is_first ? MPI_IN_PLACE : values + done, values + done, part_of(count, done), MPI_DOUBLE, MPI_SUM, 0,
                   supply_call_comm(call));
}

void copy_from(supply_call_t *call, double *values, size_t count, int rank) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Bcast(values + done, part_of(count, done), MPI_DOUBLE, rank, supply_call_comm(call));
}

void copy_from_first(supply_call_t *call, double *values, size_t count) { copy_from(call, values, count, 0); }

void send_values(supply_call_t *call, const double *values, size_t count, int to) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Send(values + done, part_of(count, done), MPI_DOUBLE, to, 0, supply_call_comm(call));
}

void receive_values(supply_call_t *call, double *values, size_t count, int from) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Recv(values + done, part_of(count, done), MPI_DOUBLE, from, 0, supply_call_comm(call), MPI_STATUS_IGNORE);
}

bool decided_by_first(supply_call_t *call, bool decision) {
    int decided = decision;
    MPI_Bcast(&decided, 1, MPI_INT, 0, supply_call_comm(call));
    return decided != 0;
}

bool is_first_rank(supply_call_t *call) {
    int rank;
    MPI_Comm_rank(supply_call_comm(call), &rank);
    return rank == 0;
}

int report_progress(supply_call_t *call, uint64_t step, uint64_t of) {
    supply_call_progress(call, step, of);
    return supply_call_cancelled(call)
               ? supply_call_fail(call, "cancelled at step %" PRIu64 " of at most %" PRIu64, step, of)
               : 0;
}

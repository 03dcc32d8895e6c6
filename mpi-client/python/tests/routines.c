/** Routines for test_ranks.py: they crash, fail, wait, and copy. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <supply_routine.h>
#include <unistd.h>

static int rank_of(supply_call_t *call) {
    int rank;
    MPI_Comm_rank(supply_call_comm(call), &rank);
    return rank;
}

/* rank: which one crashes; -1: all. */
static int crash(supply_call_t *call) {
    const int64_t rank = supply_call_integer(call, "rank");
    if (rank < 0 || rank == rank_of(call)) raise(SIGSEGV);
    MPI_Barrier(supply_call_comm(call));
    return 0;
}

static int fail(supply_call_t *call) {
    return rank_of(call) == supply_call_integer(call, "rank") ? supply_call_fail(call, "no \"luck\" today") : 0;
}

/* As a library does that takes the program for its own. */
static int leave(supply_call_t *call) {
    if (rank_of(call) == supply_call_integer(call, "rank")) exit(0);
    MPI_Barrier(supply_call_comm(call));
    return 0;
}

static int wait(supply_call_t *call) {
    while (!supply_call_cancelled(call)) usleep(10000);
    return supply_call_fail(call, "cancelled");
}

static int copy(supply_call_t *call) {
    const supply_matrix_t *from = supply_call_matrix(call, "A");
    supply_matrix_t *to = supply_call_rows(call, "B", from, from->columns);
    if (to == NULL) return 1;
    memcpy(to->values, from->values, from->local_rows * from->columns * sizeof(double));
    return 0;
}

static int forget(supply_call_t *call) {
    (void)call;
    return 0;
}

/* The sum of the entries of each column. */
static int entries(supply_call_t *call) {
    const supply_matrix_t *matrix = supply_call_matrix(call, "A");
    double *sums = supply_call_array(call, "B", 1, matrix->columns);
    if (sums == NULL || matrix->row_offsets == NULL) return supply_call_fail(call, "no sparse matrix");
    for (uint64_t i = matrix->row_offsets[0]; i < matrix->row_offsets[matrix->local_rows]; i++)
        sums[matrix->column_indices[i]] += matrix->entries[i];
    MPI_Allreduce(MPI_IN_PLACE, sums, (int)matrix->columns, MPI_DOUBLE, MPI_SUM, supply_call_comm(call));
    return 0;
}

static int hoard(supply_call_t *call) {
    return supply_call_rows(call, "B", supply_call_matrix(call, "A"), (uint64_t)1 << 40) == NULL;
}

/* One rank asks for more than there is. The others would wait for it. */
static int hoard_alone(supply_call_t *call) {
    const uint64_t columns = rank_of(call) == supply_call_integer(call, "rank") ? (uint64_t)1 << 61 : 1;
    if (supply_call_array(call, "B", 1, columns) == NULL) return 1;
    MPI_Barrier(supply_call_comm(call));
    return 0;
}

/* One rank ends long before the others. */
static int linger(supply_call_t *call) {
    if (rank_of(call) != 0) sleep((unsigned)supply_call_integer(call, "seconds"));
    return 0;
}

/* An array whose values nobody touches takes no memory. */
static int large(supply_call_t *call) {
    return supply_call_array(call, "B", 1, (uint64_t)supply_call_integer(call, "columns")) == NULL;
}

/* A text that is not UTF-8. */
static int mumble(supply_call_t *call) { return supply_call_fail(call, "caf\xe9 closed"); }

/* One rank asks for what the routine has not declared. */
static int blunder(supply_call_t *call) {
    if (rank_of(call) == supply_call_integer(call, "rank")) supply_call_integer(call, "undeclared");
    MPI_Barrier(supply_call_comm(call));
    return 0;
}

/* Leaves a message that nobody receives. */
static int litter(supply_call_t *call) {
    MPI_Request request;
    double value = 1;
    if (rank_of(call) == 0) MPI_Isend(&value, 1, MPI_DOUBLE, 1, 0, supply_call_comm(call), &request);
    if (rank_of(call) == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 0;
}

/* The message that rank 1 gets from rank 0: 2. */
static int tidy(supply_call_t *call) {
    const MPI_Comm comm = supply_call_comm(call);
    double value = 2;
    if (rank_of(call) == 0) MPI_Send(&value, 1, MPI_DOUBLE, 1, 0, comm);
    if (rank_of(call) == 1) MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, comm, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_DOUBLE, 1, comm);
    double *result = supply_call_array(call, "B", 1, 1);
    if (result != NULL) *result = value;
    return result == NULL;
}

/* Never asks whether it was cancelled. */
static int deaf(supply_call_t *call) {
    supply_call_progress(call, 1, 3);
    for (;;) usleep(10000);
}

/* Asks for one result twice. */
static int twice(supply_call_t *call) {
    return supply_call_array(call, "B", 1, 1) == NULL || supply_call_array(call, "B", 1, 1) == NULL;
}

#define RANK {"rank", SUPPLY_INTEGER, "1"}
#define MATRIX {"A", SUPPLY_MATRIX, NULL}

const supply_routine_t supply_routines[] = {
    {"crash", crash, {RANK}, {NULL}},
    {"fail", fail, {RANK}, {NULL}},
    {"leave", leave, {RANK}, {NULL}},
    {"wait", wait, {{NULL}}, {NULL}},
    {"copy", copy, {MATRIX}, {"B"}},
    {"forget", forget, {{NULL}}, {"B"}},
    {"hoard", hoard, {MATRIX}, {"B"}},
    {"entries", entries, {MATRIX}, {"B"}},
    {"hoard_alone", hoard_alone, {RANK}, {"B"}},
    {"linger", linger, {{"seconds", SUPPLY_INTEGER, NULL}}, {NULL}},
    {"large", large, {{"columns", SUPPLY_INTEGER, NULL}}, {"B"}},
    {"mumble", mumble, {{NULL}}, {NULL}},
    {"blunder", blunder, {RANK}, {NULL}},
    {"litter", litter, {{NULL}}, {NULL}},
    {"tidy", tidy, {{NULL}}, {"B"}},
    {"deaf", deaf, {{NULL}}, {NULL}},
    {"twice", twice, {{NULL}}, {"B"}},
    {.name = NULL},
};

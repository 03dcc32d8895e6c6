/**
 * What every routine needs of its call. It knows only supply_routine.h. Collective functions must be called on all
 * ranks in the same order.
 */
#include "call.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool is_small_array(supply_call_t *call, const char *name) {
    const supply_matrix_t *A = supply_call_matrix(call, name);
    uint64_t rows = A->local_rows;
    MPI_Allreduce(MPI_IN_PLACE, &rows, 1, MPI_UINT64_T, MPI_SUM, supply_call_comm(call));
    return rows != A->rows;
}

int check_matrix(supply_call_t *call, const char *name) {
    const supply_matrix_t *A = supply_call_matrix(call, name);
    if (A->rows == 0 || A->columns == 0)
        return supply_call_fail(call, "%s is %" PRIu64 " × %" PRIu64 ": it must have rows and columns", name, A->rows,
                                A->columns);
    uint64_t largest = A->local_rows > A->columns ? A->local_rows : A->columns;
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, supply_call_comm(call));
    if (is_small_array(call, name))
        return supply_call_fail(call, "%s is a small array, which every rank has: this routine needs rows", name);
    if (largest <= INT_MAX) return 0;
    return supply_call_fail(call,
                            "%s is %" PRIu64 " × %" PRIu64 ", and one rank has %" PRIu64
                            " rows or columns: at most %d, so use more ranks",
                            name, A->rows, A->columns, largest, INT_MAX);
}

int check_not_sparse(supply_call_t *call, const char *name) {
    int sparse = supply_call_matrix(call, name)->row_offsets != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &sparse, 1, MPI_INT, MPI_MAX, supply_call_comm(call));
    return sparse ? supply_call_fail(call, "%s is sparse, and this routine needs dense vectors", name) : 0;
}

int check_dense(supply_call_t *call, const char *name) {
    return check_not_sparse(call, name) || check_matrix(call, name);
}

int check_count(supply_call_t *call, const char *name, uint64_t most, const char *what) {
    const int64_t value = supply_call_integer(call, name);
    if (value >= 1 && (uint64_t)value <= most) return 0;
    return supply_call_fail(call, "%s is %" PRId64 ": it must be from 1 to %" PRIu64 ", %s", name, value, most, what);
}

int check_not_negative(supply_call_t *call, const char *name) {
    const double value = supply_call_number(call, name);
    if (isfinite(value) && value >= 0) return 0;
    return supply_call_fail(call, "%s is %g: it must not be negative", name, value);
}

int check_same_rows(supply_call_t *call, const char *left, const char *right) {
    const supply_matrix_t *A = supply_call_matrix(call, left);
    const supply_matrix_t *B = supply_call_matrix(call, right);
    if (A->rows != B->rows)
        return supply_call_fail(call,
                                "%s is %" PRIu64 " × %" PRIu64 ", and %s is %" PRIu64 " × %" PRIu64
                                ": they must have the same number of rows",
                                left, A->rows, A->columns, right, B->rows, B->columns);
    int apart = A->local_rows != B->local_rows || A->first_row != B->first_row;
    MPI_Allreduce(MPI_IN_PLACE, &apart, 1, MPI_INT, MPI_MAX, supply_call_comm(call));
    if (!apart) return 0;
    return supply_call_fail(call,
                            "%s and %s have %" PRIu64 " rows each, but not on the same ranks: make both matrices "
                            "from one DataFrame",
                            left, right, A->rows);
}

int check_finite(supply_call_t *call, const char *name, const double *values, uint64_t columns) {
    for (uint64_t i = 0; i < columns; i++)
        if (!isfinite(values[i]))
            return supply_call_fail(call, "%s: column %" PRIu64 " (from 0) has a value that is NaN, or too large", name,
                                    i);
    return 0;
}

int check_all_finite(supply_call_t *call, const char *what, const double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return supply_call_fail(call, "%s has a value that is NaN, or too large", what);
    return 0;
}

int check_choice(supply_call_t *call, const char *name, const char *const *choices, int *index) {
    const char *given = supply_call_text(call, name);
    char all[256] = "";
    for (*index = 0; choices[*index] != NULL; ++*index) {
        if (strcmp(choices[*index], given) == 0) return 0;
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "", choices[*index]);
    }
    return supply_call_fail(call, "%s is '%s': it must be one of %s", name, given, all);
}

/* MPI counts in 32 bits. */
#define PART ((size_t)1 << 27)

static int call_part_of(size_t count, size_t done) { return (int)(count - done < PART ? count - done : PART); }

void sum_over_ranks(supply_call_t *call, double *values, size_t count) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Allreduce(MPI_IN_PLACE, values + done, call_part_of(count, done), MPI_DOUBLE, MPI_SUM,
                      supply_call_comm(call));
}

void sum_to_first(supply_call_t *call, double *values, size_t count) {
    const bool is_first = is_first_rank(call);
    for (size_t done = 0; done < count; done += PART)
        MPI_Reduce(is_first ? MPI_IN_PLACE : values + done, values + done, call_part_of(count, done), MPI_DOUBLE,
                   MPI_SUM, 0, supply_call_comm(call));
}

void copy_from(supply_call_t *call, double *values, size_t count, int rank) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Bcast(values + done, call_part_of(count, done), MPI_DOUBLE, rank, supply_call_comm(call));
}

void copy_from_first(supply_call_t *call, double *values, size_t count) { copy_from(call, values, count, 0); }

void send_values(supply_call_t *call, const double *values, size_t count, int to) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Send(values + done, call_part_of(count, done), MPI_DOUBLE, to, 0, supply_call_comm(call));
}

void receive_values(supply_call_t *call, double *values, size_t count, int from) {
    for (size_t done = 0; done < count; done += PART)
        MPI_Recv(values + done, call_part_of(count, done), MPI_DOUBLE, from, 0, supply_call_comm(call),
                 MPI_STATUS_IGNORE);
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

double *workspace_add(struct workspace *workspace, size_t count) {
    void *block = workspace->count < WORKSPACE_BLOCKS_MAX ? calloc(count > 0 ? count : 1, sizeof(double)) : NULL;
    workspace->bytes += count * sizeof(double);
    if (block == NULL)
        workspace->failed = true;
    else
        workspace->blocks[workspace->count++] = block;
    return block;
}

int workspace_check(struct workspace *workspace) {
    const size_t added = workspace->bytes - workspace->checked_bytes;
    workspace->checked_bytes = workspace->bytes;
    if (supply_call_check_memory(workspace->call, added) != 0) return 1;
    int failed = workspace->failed;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, supply_call_comm(workspace->call));
    char node[MPI_MAX_PROCESSOR_NAME];
    MPI_Get_processor_name(node, &(int){0});
    if (workspace->failed)
        supply_call_fail(workspace->call, "node %s has no memory for %.3f GB: use more ranks, or more nodes", node,
                         (double)workspace->bytes / 1e9);
    return failed;
}

int workspace_run(supply_call_t *call, int run(struct workspace *)) {
    struct workspace workspace = {.call = call};
    const int status = run(&workspace);
    while (workspace.count > 0) free(workspace.blocks[--workspace.count]);
    return status;
}

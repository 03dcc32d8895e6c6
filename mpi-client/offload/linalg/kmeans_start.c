#include "kmeans_start.h"

#include <math.h>
#include <string.h>

#include "candidates.h"
#include "random_numbers.h"
#include "ranks_of_call.h"

#define ROUNDS 2
#define STREAM_ROWS 0
#define STREAM_ROUND 1

struct start {
    struct workspace *workspace;
    supply_call_t *call;
    const struct portions *portions;
    struct nearest_center nearest;
    uint64_t k;
    uint64_t seed;
    double *values; /**< the candidates, */
    uint64_t count;
    uint64_t capacity; /**< and how many may be there */
    double *squares;   /**< distance of each row to its nearest candidate, */
    double *owners;    /**< and which this is */
    double *labels;    /**< of a portion */
    uint64_t *drawn;
};

/* k rows of all by Floyd's sampling, alike on all ranks: Bentley, "Programming Pearls", CACM 30, 1987. */
static void draw_rows(const struct start *start, uint64_t *rows) {
    const uint64_t all = start->portions->A->rows;
    for (uint64_t i = 0; i < start->k; i++) {
        const uint64_t last = all - start->k + i;
        uint64_t row = (uint64_t)(random_uniform(start->seed, STREAM_ROWS, i) * (double)(last + 1));
        for (uint64_t j = 0; j < i; j++)
            if (rows[j] == row) row = last;
        rows[i] = row;
    }
}

static void copy_row(const struct start *start, uint64_t local_row, double *to) {
    const supply_matrix_t *A = start->portions->A;
    for (uint64_t j = 0; j < A->columns; j++) to[j] = A->values[local_row * A->columns + j] - start->portions->mean[j];
}

static void take_first(struct start *start) {
    const supply_matrix_t *A = start->portions->A;
    draw_rows(start, start->drawn);
    for (uint64_t i = 0; i < start->k; i++) {
        const uint64_t local_row = start->drawn[i] - A->first_row;
        if (start->drawn[i] >= A->first_row && local_row < A->local_rows)
            copy_row(start, local_row, start->values + i * A->columns);
    }
    sum_over_ranks(start->call, start->values, start->k * A->columns);
    start->count = start->k;
}

/* Takes in the candidates from number `first` on. Returns the sum of the distances on all ranks. */
static double measure(struct start *start, uint64_t first) {
    const supply_matrix_t *A = start->portions->A;
    const double *centers = start->values + first * A->columns;
    const uint64_t count = start->count - first;
    double sum = 0;
    if (count > 0) nearest_center_prepare(&start->nearest, centers, count);
    for (uint64_t at = 0, rows; count > 0 && (rows = portion_rows(start->portions, at)) > 0; at += rows) {
        const double *values = portion_values(start->portions, at);
        nearest_center_find(&start->nearest, values, rows, centers, count, start->labels);
        for (uint64_t i = 0; i < rows; i++) {
            const uint64_t label = (uint64_t)start->labels[i];
            const double square = squared_distance(values + i * A->columns, centers + label * A->columns, A->columns);
            if (first > 0 && square >= start->squares[at + i]) continue;
            start->squares[at + i] = square;
            start->owners[at + i] = (double)(first + label);
        }
    }
    for (uint64_t i = 0; i < A->local_rows; i++) sum += start->squares[i];
    sum_over_ranks(start->call, &sum, 1);
    return sum;
}

/* Each row with a chance of its part of the cost, times k. At most as many as there is memory for. */
static void take_far_rows(struct start *start, uint64_t round, double cost) {
    const supply_matrix_t *A = start->portions->A;
    int rank;
    int ranks;
    MPI_Comm_rank(supply_call_comm(start->call), &rank);
    MPI_Comm_size(supply_call_comm(start->call), &ranks);
    for (int owner = 0; owner < ranks; owner++) {
        double *to = start->values + start->count * A->columns;
        uint64_t taken = 0;
        for (uint64_t i = 0; owner == rank && i < A->local_rows && start->count + taken < start->capacity; i++)
            if (random_uniform(start->seed, STREAM_ROUND + round, A->first_row + i) * cost <
                (double)start->k * start->squares[i])
                copy_row(start, i, to + taken++ * A->columns);
        MPI_Bcast(&taken, 1, MPI_UINT64_T, owner, supply_call_comm(start->call));
        copy_from(start->call, to, taken * A->columns, owner);
        start->count += taken;
    }
}

static int pick(struct start *start, double *centers) {
    const supply_matrix_t *A = start->portions->A;
    double *weights = workspace_add(start->workspace, start->count);
    struct candidates_work work = {.best = workspace_add(start->workspace, start->k)};
    if (is_first_rank(start->call)) {
        work.squares = workspace_add(start->workspace, start->count * start->count);
        work.nearest = workspace_add(start->workspace, start->count);
        work.trial = workspace_add(start->workspace, start->count);
    }
    if (workspace_check(start->workspace) != 0) return 1;
    for (uint64_t i = 0; i < A->local_rows; i++) weights[(uint64_t)start->owners[i]]++;
    sum_over_ranks(start->call, weights, start->count);
    if (is_first_rank(start->call)) {
        const struct candidates candidates = {start->count, A->columns, start->values, weights};
        candidates_pick(&candidates, &work, start->k, start->seed, start->drawn);
        for (uint64_t i = 0; i < start->k; i++)
            memcpy(centers + i * A->columns, start->values + start->drawn[i] * A->columns,
                   A->columns * sizeof *centers);
    }
    copy_from_first(start->call, centers, start->k * A->columns);
    return 0;
}

int kmeans_start(struct workspace *workspace, const struct portions *portions, uint64_t k, uint64_t seed,
                 double *centers) {
    const supply_matrix_t *A = portions->A;
    struct start start = {.workspace = workspace, .call = workspace->call, .portions = portions, .k = k, .seed = seed};
    /* A round takes k rows in the mean. */
    start.capacity = k * (2 * ROUNDS + 1) + 16;
    start.values = workspace_add(workspace, start.capacity * A->columns);
    start.squares = workspace_add(workspace, A->local_rows);
    start.owners = workspace_add(workspace, A->local_rows);
    start.labels = workspace_add(workspace, portions->size);
    start.drawn = (uint64_t *)workspace_add(workspace, k);
    nearest_center_init(&start.nearest, workspace, portions, start.capacity);
    if (workspace_check(workspace) != 0) return 1;
    take_first(&start);
    double cost = measure(&start, 0);
    for (uint64_t round = 0; round < ROUNDS && cost > 0; round++) {
        const uint64_t first = start.count;
        take_far_rows(&start, round, cost);
        cost = measure(&start, first);
    }
    return pick(&start, centers);
}

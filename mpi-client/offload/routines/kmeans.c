/** The routine kmeans (routines.h): first centers by k-means||, then Lloyd's algorithm. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "call.h"
#include "random_numbers.h"
#include "routines.h"
#include "rows.h"

struct candidates {
    uint64_t count;
    uint64_t columns;
    const double *values;  /**< count × columns */
    const double *weights; /**< rows that are nearest to each */
};

/** Memory of candidates_pick(): squares has count × count numbers, nearest and trial have count, best has k. */
struct candidates_work {
    double *squares;
    double *nearest;
    double *trial;
    double *best;
};

#define STARTS 8
/* Streams of random numbers that others have. */
#define STREAM_FIRST 100

static void measure_candidates(const struct candidates *candidates, double *squares) {
    const uint64_t count = candidates->count;
    const uint64_t columns = candidates->columns;
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j <= i; j++)
            squares[i * count + j] = squares[j * count + i] =
                squared_distance(candidates->values + i * columns, candidates->values + j * columns, columns);
}

static double cost_of(const struct candidates *candidates, const double *nearest) {
    double cost = 0;
    for (uint64_t i = 0; i < candidates->count; i++) cost += candidates->weights[i] * nearest[i];
    return cost;
}

/* One at random, as likely as its weight times its distance. None is left with a distance: the first of the others. */
static uint64_t kmeans_draw(const struct candidates *candidates, const double *nearest, double random) {
    double left = random * cost_of(candidates, nearest);
    uint64_t last = 0;
    for (uint64_t i = 0; i < candidates->count; i++) {
        const double share = candidates->weights[i] * nearest[i];
        if (share <= 0) continue;
        last = i;
        if (left < share) return i;
        left -= share;
    }
    return last;
}

/* The distances of all to the nearest picked one, if `next` is picked, too. */
static void reduce(const struct candidates *candidates, const double *squares, uint64_t next, const double *nearest,
                   double *reduced) {
    for (uint64_t i = 0; i < candidates->count; i++)
        reduced[i] = fmin(nearest[i], squares[next * candidates->count + i]);
}

static uint64_t pick_next(const struct candidates *candidates, const struct candidates_work *work, uint64_t stream,
                          uint64_t number, uint64_t trials, uint64_t seed) {
    uint64_t best = 0;
    double least = INFINITY;
    for (uint64_t trial = 0; trial < trials; trial++) {
        const uint64_t one =
            kmeans_draw(candidates, work->nearest, random_uniform(seed, stream, number * trials + trial));
        reduce(candidates, work->squares, one, work->nearest, work->trial);
        const double cost = cost_of(candidates, work->trial);
        if (cost >= least) continue;
        least = cost;
        best = one;
    }
    return best;
}

static double pick_once(const struct candidates *candidates, const struct candidates_work *work, uint64_t k,
                        uint64_t start, uint64_t seed, uint64_t *picked) {
    const uint64_t trials = 2 + (uint64_t)log((double)k);
    for (uint64_t i = 0; i < candidates->count; i++) work->nearest[i] = 1;
    for (uint64_t number = 0; number < k; number++) {
        const uint64_t next = pick_next(candidates, work, STREAM_FIRST + start, number, number == 0 ? 1 : trials, seed);
        if (number == 0)
            for (uint64_t i = 0; i < candidates->count; i++) work->nearest[i] = INFINITY;
        reduce(candidates, work->squares, next, work->nearest, work->nearest);
        picked[number] = next;
    }
    return cost_of(candidates, work->nearest);
}

/**
 * Picks k of them by greedy k-means++ (Arthur and Vassilvitskii, SODA 2007): of several that are drawn, the one that
 * leaves the least cost; the best of several such starts. picked: k numbers. Only on the rank that calls it.
 */
static void candidates_pick(const struct candidates *candidates, const struct candidates_work *work, uint64_t k,
                            uint64_t seed, uint64_t *picked) {
    double least = INFINITY;
    uint64_t *one = (uint64_t *)work->best;
    measure_candidates(candidates, work->squares);
    for (uint64_t start = 0; start < STARTS; start++) {
        const double cost = pick_once(candidates, work, k, start, seed, one);
        if (start > 0 && !(cost < least)) continue;
        least = cost;
        memcpy(picked, one, k * sizeof *picked);
    }
}

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
    for (uint64_t j = 0; j < A->columns; j++) to[j] = A->values[local_row * A->columns + j];
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
static double kmeans_measure(struct start *start, uint64_t first) {
    const supply_matrix_t *A = start->portions->A;
    const double *centers = start->values + first * A->columns;
    const uint64_t count = start->count - first;
    double sum = 0;
    for (uint64_t at = 0, rows; count > 0 && (rows = nearest_center_find(&start->nearest, at, centers, count)) > 0;
         at += rows)
        for (uint64_t i = 0; i < rows; i++) {
            if (first > 0 && start->nearest.distances[i] >= start->squares[at + i]) continue;
            start->squares[at + i] = start->nearest.distances[i];
            start->owners[at + i] = (double)first + start->nearest.labels[i];
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

static int kmeans_pick(struct start *start, double *centers) {
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

/*
 * k-means|| (Bahmani, Moseley, Vattani, Kumar, Vassilvitskii, PVLDB 5, 2012): k rows at random, then two rounds that
 * take about k rows each, more likely if they are far from all that were taken; candidates_pick() then picks k of them.
 * centers: k × columns, alike on all ranks. Not 0: the call has failed. Collective.
 */
static int kmeans_start(struct workspace *workspace, const struct portions *portions, uint64_t k, uint64_t seed,
                        double *centers) {
    const supply_matrix_t *A = portions->A;
    struct start start = {.workspace = workspace, .call = workspace->call, .portions = portions, .k = k, .seed = seed};
    /* A round takes k rows in the mean. */
    start.capacity = k * (2 * ROUNDS + 1) + 16;
    start.values = workspace_add(workspace, start.capacity * A->columns);
    start.squares = workspace_add(workspace, A->local_rows);
    start.owners = workspace_add(workspace, A->local_rows);
    start.drawn = (uint64_t *)workspace_add(workspace, k);
    nearest_center_init(&start.nearest, workspace, portions, start.capacity);
    if (workspace_check(workspace) != 0) return 1;
    take_first(&start);
    double cost = kmeans_measure(&start, 0);
    for (uint64_t round = 0; round < ROUNDS && cost > 0; round++) {
        const uint64_t first = start.count;
        take_far_rows(&start, round, cost);
        cost = kmeans_measure(&start, first);
    }
    return kmeans_pick(&start, centers);
}

struct lloyd {
    supply_call_t *call;
    const struct portions *portions;
    struct nearest_center nearest;
    uint64_t k;
    double *centers; /**< k × columns */
    double *labels;
    double *sums;   /**< of the rows of each cluster, */
    double *counts; /**< and their number, in the same memory */
};

static void add_row(double *sums, const double *row, uint64_t columns) {
    for (uint64_t j = 0; j < columns; j++) sums[j] += row[j];
}

/* Assigns each row to its nearest center. Returns the sum of the squared distances, and adds up the clusters. */
static double assign(struct lloyd *lloyd) {
    const uint64_t columns = lloyd->portions->A->columns;
    double cost = 0;
    memset(lloyd->sums, 0, lloyd->k * (columns + 1) * sizeof *lloyd->sums);
    for (uint64_t first = 0, rows; (rows = nearest_center_find(&lloyd->nearest, first, lloyd->centers, lloyd->k)) > 0;
         first += rows) {
        memcpy(lloyd->labels + first, lloyd->nearest.labels, rows * sizeof *lloyd->labels);
        for (uint64_t i = 0; i < rows; i++) {
            const uint64_t label = (uint64_t)lloyd->nearest.labels[i];
            cost += lloyd->nearest.distances[i];
            add_row(lloyd->sums + label * columns, lloyd->portions->A->values + (first + i) * columns, columns);
            lloyd->counts[label]++;
        }
    }
    return cost;
}

/* Moves the centers to the means of their rows. Returns the farthest way. */
static double move_centers(struct lloyd *lloyd) {
    const uint64_t columns = lloyd->portions->A->columns;
    double farthest = 0;
    sum_over_ranks(lloyd->call, lloyd->sums, lloyd->k * (columns + 1));
    for (uint64_t c = 0; c < lloyd->k; c++) {
        double *center = lloyd->centers + c * columns;
        double *mean = lloyd->sums + c * columns;
        if (lloyd->counts[c] == 0) continue;
        for (uint64_t j = 0; j < columns; j++) mean[j] /= lloyd->counts[c];
        farthest = fmax(farthest, squared_distance(center, mean, columns));
        memcpy(center, mean, columns * sizeof *center);
    }
    return sqrt(farthest);
}

static int kmeans_iterate(struct lloyd *lloyd, double *cost) {
    const double tolerance = supply_call_number(lloyd->call, "tolerance");
    const int64_t iterations = supply_call_integer(lloyd->call, "iterations");
    bool is_done = false;
    for (int64_t i = 0; i < iterations && !is_done; i++) {
        if (report_progress(lloyd->call, (uint64_t)i, (uint64_t)iterations) != 0) return 1;
        assign(lloyd);
        is_done = decided_by_first(lloyd->call, move_centers(lloyd) <= tolerance);
    }
    /* The labels, and the cost, of the centers that are returned. */
    *cost = assign(lloyd);
    sum_over_ranks(lloyd->call, cost, 1);
    return 0;
}

static int run_kmeans(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    if (check_dense(call, "A") || check_count(call, "k", A->rows, "the rows of A") ||
        check_count(call, "iterations", INT64_MAX, "of 64 bits") || check_not_negative(call, "tolerance"))
        return 1;
    struct lloyd lloyd = {.call = call, .k = (uint64_t)supply_call_integer(call, "k")};
    lloyd.centers = supply_call_array(call, "centers", lloyd.k, A->columns);
    const supply_matrix_t *labels = supply_call_rows(call, "labels", A, 1);
    double *cost = supply_call_array(call, "cost", 1, 1);
    double *mean = workspace_add(workspace, A->columns);
    struct portions portions;
    portions_init(&portions, workspace, A, mean, NULL, CACHED_PORTION);
    nearest_center_init(&lloyd.nearest, workspace, &portions, lloyd.k);
    lloyd.sums = workspace_add(workspace, lloyd.k * (A->columns + 1));
    if (lloyd.centers == NULL || labels == NULL || cost == NULL || workspace_check(workspace) != 0) return 1;
    lloyd.portions = &portions;
    lloyd.labels = labels->values;
    lloyd.counts = lloyd.sums + lloyd.k * A->columns;
    if (check_squares(workspace, "A", A) != 0 || column_means(workspace, "A", A, mean) != 0) return 1;
    const uint64_t seed = (uint64_t)supply_call_integer(call, "seed");
    if (kmeans_start(workspace, &portions, lloyd.k, seed, lloyd.centers) != 0) return 1;
    return kmeans_iterate(&lloyd, cost);
}

ROUTINE(kmeans)

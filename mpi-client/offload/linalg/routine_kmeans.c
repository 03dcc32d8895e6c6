#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "checks.h"
#include "kmeans_start.h"
#include "ranks_of_call.h"
#include "routines.h"

struct lloyd {
    supply_call_t *call;
    const struct portions *portions;
    struct nearest_center nearest;
    uint64_t k;
    double *centers; /**< k × columns, less the means */
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
    nearest_center_prepare(&lloyd->nearest, lloyd->centers, lloyd->k);
    for (uint64_t first = 0, rows; (rows = portion_rows(lloyd->portions, first)) > 0; first += rows) {
        const double *values = portion_values(lloyd->portions, first);
        nearest_center_find(&lloyd->nearest, values, rows, lloyd->centers, lloyd->k, lloyd->labels + first);
        for (uint64_t i = 0; i < rows; i++) {
            const uint64_t label = (uint64_t)lloyd->labels[first + i];
            cost += squared_distance(values + i * columns, lloyd->centers + label * columns, columns);
            add_row(lloyd->sums + label * columns, values + i * columns, columns);
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

static int iterate(struct lloyd *lloyd, double *cost) {
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

static int run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    struct lloyd lloyd = {.call = call, .k = (uint64_t)supply_call_integer(call, "k")};
    lloyd.centers = supply_call_array(call, "centers", lloyd.k, A->columns);
    const supply_matrix_t *labels = supply_call_rows(call, "labels", A, 1);
    double *cost = supply_call_array(call, "cost", 1, 1);
    double *mean = workspace_add(workspace, A->columns);
    struct portions portions;
    portions_init(&portions, workspace, A, mean, CACHED_PORTION);
    nearest_center_init(&lloyd.nearest, workspace, &portions, lloyd.k);
    lloyd.sums = workspace_add(workspace, lloyd.k * (A->columns + 1));
    if (lloyd.centers == NULL || labels == NULL || cost == NULL || workspace_check(workspace) != 0) return 1;
    lloyd.portions = &portions;
    lloyd.labels = labels->values;
    lloyd.counts = lloyd.sums + lloyd.k * A->columns;
    column_means(call, A, mean);
    if (check_finite(call, "A", mean, A->columns) != 0) return 1;
    const uint64_t seed = (uint64_t)supply_call_integer(call, "seed");
    if (kmeans_start(workspace, &portions, lloyd.k, seed, lloyd.centers) != 0) return 1;
    if (iterate(&lloyd, cost) != 0) return 1;
    for (uint64_t c = 0; c < lloyd.k; c++) add_row(lloyd.centers + c * A->columns, mean, A->columns);
    return 0;
}

int routine_kmeans(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    const int status = check_dense(call, "A") ||
                       check_count(call, "k", supply_call_matrix(call, "A")->rows, "the rows of A") ||
                       check_count(call, "iterations", INT64_MAX, "of 64 bits") ||
                       check_not_negative(call, "tolerance") || run(&workspace);
    workspace_free(&workspace);
    return status;
}

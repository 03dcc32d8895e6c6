/** The routine random_features (routines.h), by random_numbers.h and cosines.h. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "call.h"
#include "cosines.h"
#include "random_numbers.h"
#include "routines.h"
#include "rows.h"

#define STREAM_WEIGHTS 0
#define STREAM_SHIFTS 1

struct map {
    uint64_t features;
    double *weights; /**< columns × features */
    double *shifts;
};

static void features_draw(const struct map *map, uint64_t columns, uint64_t seed, double bandwidth) {
    for (uint64_t i = 0; i < columns * map->features; i++)
        map->weights[i] = random_normal(seed, STREAM_WEIGHTS, i) / bandwidth;
    for (uint64_t i = 0; i < map->features; i++) map->shifts[i] = TWO_PI * random_uniform(seed, STREAM_SHIFTS, i);
}

static int features_run(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    struct map map = {.features = (uint64_t)supply_call_integer(call, "features")};
    struct row_operator op;
    const supply_matrix_t *Z = supply_call_rows(call, "Z", A, map.features);
    map.weights = workspace_add(workspace, A->columns * map.features);
    map.shifts = workspace_add(workspace, map.features);
    double *norms = workspace_add(workspace, A->columns);
    row_operator_init(&op, workspace, A, NULL, NULL, 0);
    if (Z == NULL || workspace_check(workspace) != 0) return 1;
    if (column_norms(workspace, "A", A, NULL, norms) != 0) return 1;
    features_draw(&map, A->columns, (uint64_t)supply_call_integer(call, "seed"), supply_call_number(call, "bandwidth"));
    row_operator_apply(&op, map.weights, map.features, Z->values);
    for (uint64_t i = 0; i < A->local_rows; i++)
        cosines(Z->values + i * map.features, map.shifts, map.features, sqrt(2.0 / (double)map.features));
    return 0;
}

int routine_random_features(supply_call_t *call) {
    struct workspace workspace = {.call = call};
    if (check_matrix(call, "A") || check_count(call, "features", INT_MAX, "of 32 bits")) return 1;
    const double bandwidth = supply_call_number(call, "bandwidth");
    if (!(isfinite(bandwidth) && bandwidth > 0))
        return supply_call_fail(call, "bandwidth is %g: it must be positive", bandwidth);
    const int status = features_run(&workspace);
    workspace_free(&workspace);
    return status;
}

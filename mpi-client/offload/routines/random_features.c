/** The routine random_features (routines.h). Compiled with -ffast-math: no check of a value that may be NaN here. */
#include <limits.h>
#include <math.h>

#include "call.h"
#include "random_numbers.h"
#include "routines.h"
#include "rows.h"

#define TWO_PI 6.283185307179586476925286766559

enum stream { WEIGHTS, SHIFTS };

/* Number `index` of a normal distribution with mean 0 and variance 1 (Box and Muller, 1958). */
static double random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    /* 1 − u is not 0. */
    const double radius = sqrt(-2 * log(1 - random_uniform(seed, stream, 2 * index)));
    return radius * cos(TWO_PI * random_uniform(seed, stream, 2 * index + 1));
}

static int run_random_features(struct workspace *workspace) {
    supply_call_t *call = workspace->call;
    const supply_matrix_t *A = supply_call_matrix(call, "A");
    const double bandwidth = supply_call_number(call, "bandwidth");
    if (check_matrix(call, "A") || check_count(call, "features", INT_MAX, "of 32 bits") ||
        check_not_negative(call, "bandwidth"))
        return 1;
    if (bandwidth == 0) return supply_call_fail(call, "bandwidth is 0: it must be positive");
    const uint64_t features = (uint64_t)supply_call_integer(call, "features");
    const uint64_t seed = (uint64_t)supply_call_integer(call, "seed");
    const supply_matrix_t *Z = supply_call_rows(call, "Z", A, features);
    double *weights = workspace_add(workspace, A->columns * features);
    double *shifts = workspace_add(workspace, features);
    double *norms = workspace_add(workspace, A->columns);
    struct row_operator op;
    row_operator_init(&op, workspace, A, NULL, NULL, 0);
    if (Z == NULL || workspace_check(workspace) != 0) return 1;
    if (column_norms(workspace, "A", A, NULL, norms) != 0) return 1;
    double bound = 0;
    for (uint64_t i = 0; i < A->columns * features; i++) {
        weights[i] = random_normal(seed, WEIGHTS, i) / bandwidth;
        bound += fabs(weights[i]) * norms[i / features];
    }
    if (check_all_finite(call, "A / bandwidth", &bound, 1) != 0) return 1;
    for (uint64_t i = 0; i < features; i++) shifts[i] = TWO_PI * random_uniform(seed, SHIFTS, i);
    row_operator_apply(&op, weights, features, Z->values);
    const double scale = sqrt(2.0 / (double)features);
    for (uint64_t i = 0; i < A->local_rows; i++)
        for (uint64_t j = 0; j < features; j++)
            Z->values[i * features + j] = scale * cos(Z->values[i * features + j] + shifts[j]);
    return 0;
}

ROUTINE(random_features)

#include "conjugate_gradients.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ranks_of_call.h"

struct state {
    uint64_t columns;
    uint64_t vectors;
    double *residual;
    double *direction;
    double *product;  /**< (AᵀA + l2 I) direction */
    double *squares;  /**< of the residuals */
    double *previous; /**< squares of the iteration before */
    double *limits;   /**< squares at which a vector is solved */
};

/* sums[v] = Σ left[j, v] right[j, v] */
static void dot(const struct state *state, const double *left, const double *right, double *sums) {
    memset(sums, 0, state->vectors * sizeof *sums);
    for (uint64_t j = 0; j < state->columns; j++)
        for (uint64_t v = 0; v < state->vectors; v++)
            sums[v] += left[j * state->vectors + v] * right[j * state->vectors + v];
}

static void apply(const struct conjugate_gradients *problem, const double *X, double *Y) {
    const uint64_t count = problem->op->A->columns * problem->vectors;
    row_operator_apply_gram(problem->op, X, problem->vectors, Y);
    for (uint64_t i = 0; i < count; i++) Y[i] += problem->l2 * X[i];
}

static bool is_solved(const struct state *state) {
    for (uint64_t v = 0; v < state->vectors; v++)
        if (!(state->squares[v] <= state->limits[v])) return false;
    return true;
}

/* The step of a vector that is solved is 0: its further steps would be noise. */
static double step_of(const struct state *state, uint64_t v, double curvature) {
    return state->squares[v] > state->limits[v] && curvature > 0 ? state->squares[v] / curvature : 0;
}

static void iterate(const struct conjugate_gradients *problem, struct state *state, double *steps, double *X) {
    apply(problem, state->direction, state->product);
    dot(state, state->direction, state->product, steps);
    for (uint64_t v = 0; v < state->vectors; v++) steps[v] = step_of(state, v, steps[v]);
    memcpy(state->previous, state->squares, state->vectors * sizeof *state->squares);
    for (uint64_t j = 0; j < state->columns; j++)
        for (uint64_t v = 0; v < state->vectors; v++) {
            const uint64_t i = j * state->vectors + v;
            X[i] += steps[v] * state->direction[i];
            state->residual[i] -= steps[v] * state->product[i];
        }
    dot(state, state->residual, state->residual, state->squares);
    for (uint64_t j = 0; j < state->columns; j++)
        for (uint64_t v = 0; v < state->vectors; v++) {
            const uint64_t i = j * state->vectors + v;
            const double turn = state->previous[v] > 0 ? state->squares[v] / state->previous[v] : 0;
            state->direction[i] = state->residual[i] + turn * state->direction[i];
        }
}

/* The largest residual relative to its right side, computed from X. */
static double final_residual(const struct conjugate_gradients *problem, struct state *state, const double *X) {
    double largest = 0;
    apply(problem, X, state->product);
    for (uint64_t i = 0; i < state->columns * state->vectors; i++)
        state->residual[i] = problem->right[i] - state->product[i];
    dot(state, state->residual, state->residual, state->squares);
    dot(state, problem->right, problem->right, state->limits);
    for (uint64_t v = 0; v < state->vectors; v++) {
        const double residual = sqrt(state->squares[v] / (state->limits[v] > 0 ? state->limits[v] : 1));
        if (!(residual <= largest)) largest = residual;
    }
    return largest;
}

int conjugate_gradients(struct workspace *workspace, const struct conjugate_gradients *problem, double *X) {
    supply_call_t *call = workspace->call;
    struct state state = {.columns = problem->op->A->columns, .vectors = problem->vectors};
    const size_t count = state.columns * state.vectors;
    double **const fields[] = {&state.residual, &state.direction, &state.product};
    for (size_t i = 0; i < 3; i++) *fields[i] = workspace_add(workspace, count);
    double *scalars = workspace_add(workspace, 4 * state.vectors);
    if (workspace_check(workspace) != 0) return 1;
    state.squares = scalars;
    state.previous = scalars + state.vectors;
    state.limits = scalars + 2 * state.vectors;
    memcpy(state.residual, problem->right, count * sizeof *X);
    memcpy(state.direction, problem->right, count * sizeof *X);
    dot(&state, state.residual, state.residual, state.squares);
    for (uint64_t v = 0; v < state.vectors; v++)
        state.limits[v] = state.squares[v] * problem->tolerance * problem->tolerance;
    int64_t iteration = 0;
    while (!decided_by_first(call, is_solved(&state) || iteration >= problem->iterations)) {
        iterate(problem, &state, scalars + 3 * state.vectors, X);
        if (report_progress(call, (uint64_t)++iteration, (uint64_t)problem->iterations) != 0) return 1;
    }
    /* Rounding makes the residual that is carried along too small in the end. */
    const double residual = final_residual(problem, &state, X);
    if (!decided_by_first(call, !(residual <= 10 * problem->tolerance))) return 0;
    return supply_call_fail(call,
                            "conjugate gradients did not converge: after %" PRId64 " iterations a residual is %g of "
                            "its right side, not %g: set l2 or iterations larger",
                            iteration, residual, problem->tolerance);
}

/**
 * What every routine needs of its call: checks of its parameters, what its ranks do together, and memory beside its
 * results. Functions that may fail return an int. Not 0: the call has failed, alike on all ranks.
 */
#pragma once

#include <stddef.h>

#include "supply_routine.h"

/**
 * The matrix has rows and columns, is no small array, is dense, and each rank's part is within the 32 bits of BLAS.
 * Collective.
 */
int check_dense(supply_call_t *call, const char *name);

/** Whether every rank has all rows, as of an array result. A single rank has always, and false is returned. Collective.
 */
bool is_small_array(supply_call_t *call, const char *name);

int check_not_sparse(supply_call_t *call, const char *name);

/** As check_dense(), but the matrix may be sparse. Collective. */
int check_matrix(supply_call_t *call, const char *name);

/** An integer parameter is from 1 to `most`, which is `what`. */
int check_count(supply_call_t *call, const char *name, uint64_t most, const char *what);

/** A number parameter is not negative. */
int check_not_negative(supply_call_t *call, const char *name);

/** Two matrices have the same rows on the same ranks. Collective. */
int check_same_rows(supply_call_t *call, const char *left, const char *right);

/** Each value is finite: neither NaN nor infinite. values: alike on all ranks, one for each column of the matrix. */
int check_finite(supply_call_t *call, const char *name, const double *values, uint64_t columns);

/** The same for values that belong to no column. what: the matrices they were computed from. */
int check_all_finite(supply_call_t *call, const char *what, const double *values, uint64_t count);

/** A text parameter is one of the choices, which end with NULL. index: the number of the choice. */
int check_choice(supply_call_t *call, const char *name, const char *const *choices, int *index);

/* What the ranks of a call do together. Functions are collective unless they name another rank. */

/** Adds the values of all ranks; all ranks get the sums. */
void sum_over_ranks(supply_call_t *call, double *values, size_t count);

/** The same, but only rank 0 gets the sums: half the communication. The others keep values without a meaning. */
void sum_to_first(supply_call_t *call, double *values, size_t count);

/** All ranks get the values of one rank. */
void copy_from(supply_call_t *call, double *values, size_t count, int rank);

/** All ranks get the values of rank 0. */
void copy_from_first(supply_call_t *call, double *values, size_t count);

/** To and from one other rank. */
void send_values(supply_call_t *call, const double *values, size_t count, int to);
void receive_values(supply_call_t *call, double *values, size_t count, int from);

/** What rank 0 says. Nodes with other processors may round otherwise, and must not take another branch. */
bool decided_by_first(supply_call_t *call, bool decision);

bool is_first_rank(supply_call_t *call);

/** Tells Spark that `step` of at most `of` steps are done. Not 0: the call was cancelled. */
int report_progress(supply_call_t *call, uint64_t step, uint64_t of);

#define WORKSPACE_BLOCKS_MAX 64

struct workspace {
    supply_call_t *call;
    void *blocks[WORKSPACE_BLOCKS_MAX];
    size_t count;
    size_t bytes;
    size_t checked_bytes; /**< of them, when workspace_check() was called last */
    bool failed;
};

/** `count` values, 0 each, that live until the routine ends. NULL: no memory, and workspace_check() will fail. */
double *workspace_add(struct workspace *workspace, size_t count);

/**
 * 0 if all ranks got what they have added since the last check, and their nodes have that much memory. Otherwise the
 * call has failed, alike on all ranks. Collective.
 */
int workspace_check(struct workspace *workspace);

/** Defines routine_NAME(): run_NAME(), which returns 0 or has failed the call, with a workspace. */
#define ROUTINE(name)                                                                                                  \
    int routine_##name(supply_call_t *call) { return workspace_run(call, run_##name); }
int workspace_run(supply_call_t *call, int run(struct workspace *));

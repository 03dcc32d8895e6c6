/** What a routine may ask of its parameters. Not 0: the call has failed, alike on all ranks. */
#ifndef CHECKS_H
#define CHECKS_H

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

#endif

/** What the ranks of a call do together. Functions are collective unless they name another rank. */
#ifndef RANKS_OF_CALL_H
#define RANKS_OF_CALL_H

#include <stddef.h>

#include "supply_routine.h"

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

#endif

/** PETSc and SLEPc inside a server that is not theirs. */
#ifndef SLEPC_SESSION_H
#define SLEPC_SESSION_H

#include <slepcsys.h>

#include "supply_routine.h"

/**
 * Starts PETSc at the first call: with all ranks, without its signal handlers and its output. The program ends
 * it by exiting. Collective.
 */
PetscErrorCode slepc_session(void);

/**
 * 0 if the nodes have memory for the basis in which SLEPc by default looks for `k` results, of at most `most` vectors
 * with `local_values` values on this rank. Otherwise the call has failed. Collective.
 */
int slepc_check_basis(supply_call_t *call, uint64_t k, uint64_t most, uint64_t local_values);

/** Fails the call with PETSc's text of an error. */
int slepc_fail(supply_call_t *call, const char *solver, PetscErrorCode error);

#endif

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

/** Fails the call with PETSc's text of an error. */
int slepc_fail(supply_call_t *call, const char *solver, PetscErrorCode error);

#endif

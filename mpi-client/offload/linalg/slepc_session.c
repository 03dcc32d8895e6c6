#include "slepc_session.h"

PetscErrorCode slepc_session(void) {
    PetscBool started;
    PetscCall(SlepcInitialized(&started));
    if (started) return 0;
    PetscCall(PetscOptionsSetValue(NULL, "-no_signal_handler", "true"));
    PetscCall(PetscOptionsSetValue(NULL, "-skip_petscrc", "true"));
    PetscCall(SlepcInitializeNoArguments());
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    return 0;
}

int slepc_check_basis(supply_call_t *call, uint64_t k, uint64_t most, uint64_t local_values) {
    /* ncv of SLEPc's SVDSetDimensions and EPSSetDimensions: for many results it restarts in parts of 500. */
    uint64_t vectors = k + (k < 500 ? (k > 15 ? k : 15) : 500);
    if (vectors > most) vectors = most;
    return supply_call_check_memory(call, (vectors + 1) * local_values * sizeof(double));
}

int slepc_fail(supply_call_t *call, const char *solver, PetscErrorCode error) {
    const char *text = NULL;
    PetscErrorMessage(error, &text, NULL);
    return supply_call_fail(call, "SLEPc's %s failed: %s (error %d of PETSc)", solver, text == NULL ? "unknown" : text,
                            error);
}

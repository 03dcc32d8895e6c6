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

int slepc_fail(supply_call_t *call, const char *solver, PetscErrorCode error) {
    const char *text = NULL;
    PetscErrorMessage(error, &text, NULL);
    return supply_call_fail(call, "SLEPc's %s failed: %s (error %d of PETSc)", solver, text == NULL ? "unknown" : text,
                            error);
}

/** In place of lanczos.c where SLEPc is not installed: both methods fail. */
#include "lanczos.h"

bool lanczos_is_available(void) { return false; }

int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    (void)op;
    (void)values;
    return supply_call_fail(workspace->call, "this libsupply_linalg was built without SLEPc, which sparse matrices and "
                                             "method=lanczos need: install slepc-dev, and build it again");
}

int symmetric_lanczos(struct workspace *workspace, const struct row_operator *op, const struct eigenvalues *wanted) {
    (void)op;
    (void)wanted;
    return supply_call_fail(workspace->call, "this libsupply_linalg was built without SLEPc, which eigenvalues need: "
                                             "install slepc-dev, and build it again");
}

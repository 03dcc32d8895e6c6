#include "lanczos.h"

bool lanczos_is_available(void) { return false; }

int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values) {
    (void)op;
    (void)values;
    return supply_call_fail(workspace->call, "this libsupply_linalg was built without SLEPc, which sparse matrices and "
                                             "method=lanczos need: install slepc-dev, and build it again");
}

#include "symmetric_lanczos.h"

int symmetric_lanczos(struct workspace *workspace, const struct row_operator *op, const struct eigenvalues *wanted) {
    (void)op;
    (void)wanted;
    return supply_call_fail(workspace->call, "this libsupply_linalg was built without SLEPc, which eigenvalues need: "
                                             "install slepc-dev, and build it again");
}

/** Singular values by the Lanczos method of SLEPc. */
#ifndef LANCZOS_H
#define LANCZOS_H

#include "row_operator.h"
#include "singular_values.h"

/** Whether this library was built with SLEPc. */
bool lanczos_is_available(void);

/**
 * Fills U, S and V by Golub-Kahan-Lanczos bidiagonalization with thick restarts (Hernández, Román, Tomás, "A robust and
 * efficient parallel SVD solver based on restarted Lanczos bidiagonalization", ETNA 31, 2008): SLEPc's trlanczos. The
 * rows stay in place. Not 0: the call has failed. Collective.
 */
int lanczos(struct workspace *workspace, const struct row_operator *op, const struct singular_values *values);

#endif

/** Cosines of many values. */
#ifndef COSINES_H
#define COSINES_H

#include <stddef.h>

/** values[i] = scale × cos(values[i] + shifts[i]), to 4 units of the last digit. */
void cosines(double *values, const double *shifts, size_t count, double scale);

#endif

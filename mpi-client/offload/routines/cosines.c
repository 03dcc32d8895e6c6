/**
 * Cosines of many values. Compiled with -ffast-math: the compiler then takes the cosine of several values at a time
 * (glibc's libmvec).
 */
#include "cosines.h"

#include <math.h>

void cosines(double *values, const double *shifts, size_t count, double scale) {
    for (size_t i = 0; i < count; i++) values[i] = scale * cos(values[i] + shifts[i]);
}

#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/** Nanoseconds of the clock that System.nanoTime() reads: times of both sides can be compared. */
int64_t clock_nanos(void);

/** CPU time of this process in nanoseconds. */
int64_t clock_cpu_nanos(void);

#endif

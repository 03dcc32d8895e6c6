#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/** Nanoseconds on the clock that System.nanoTime() reads, too, so that times of both sides can be compared. */
int64_t clock_nanos(void);

/** Nanoseconds that this process has been at work. */
int64_t clock_cpu_nanos(void);

#endif

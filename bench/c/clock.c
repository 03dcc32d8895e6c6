#include "clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t clock_nanos(void) { return read_clock(CLOCK_MONOTONIC); }

int64_t clock_cpu_nanos(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

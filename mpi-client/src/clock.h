/** The monotonic clock, in nanoseconds. */
#ifndef SUPPLY_CLOCK_H
#define SUPPLY_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NANOSECONDS 1000000000

static inline int64_t supply_clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec;
}

static inline int64_t supply_clock_after(double seconds) { return supply_clock_now() + (int64_t)(seconds * 1e9); }

static inline void supply_clock_sleep(double seconds) {
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

#endif

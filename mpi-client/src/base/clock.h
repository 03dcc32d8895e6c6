/** The monotonic clock, in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

#define NANOSECONDS 1000000000

static inline int64_t supply__clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec;
}

/** INFINITY: never. */
static inline int64_t supply__clock_add(int64_t time, double seconds) {
    return seconds < 1e9 ? time + (int64_t)(seconds * NANOSECONDS) : INT64_MAX;
}

static inline int64_t supply__clock_after(double seconds) { return supply__clock_add(supply__clock_now(), seconds); }

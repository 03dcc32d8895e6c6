/**
 * The monotonic clock, in nanoseconds; and a wait that polls something without a descriptor, for example MPI: its end,
 * and the pause between two polls.
 */
#ifndef SUPPLY_CLOCK_H
#define SUPPLY_CLOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
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

/* Processes that are ready answer sooner. Until then a poll only yields the core. */
#define POLL_SPIN_NANOSECONDS 1000000
#define POLL_PAUSE_SECONDS 50e-6

/** What ends a wait: its time limit, and interrupted(), which may be NULL. */
struct poll_limit {
    double seconds;
    bool (*interrupted)(void *context);
    void *interrupted_context;
};

static inline bool supply_poll_is_interrupted(const struct poll_limit *limit) {
    return limit->interrupted != NULL && limit->interrupted(limit->interrupted_context);
}

/** since: when the wait began, or its last progress was (supply_clock_now). */
static inline void supply_poll_pause(int64_t since) {
    if (supply_clock_now() - since < POLL_SPIN_NANOSECONDS)
        sched_yield();
    else
        supply_clock_sleep(POLL_PAUSE_SECONDS);
}

#endif

/** The pause between two polls of something that has no descriptor, for example MPI. */
#ifndef SUPPLY_POLL_PAUSE_H
#define SUPPLY_POLL_PAUSE_H

#include <sched.h>

#include "clock.h"

/* Processes that are ready answer sooner. Until then a poll only yields the core. */
#define POLL_SPIN_NANOSECONDS 1000000
#define POLL_PAUSE_SECONDS 50e-6

/** since: when the wait began, or its last progress was (supply_clock). */
static inline void supply_poll_pause(int64_t since) {
    if (supply_clock_now() - since < POLL_SPIN_NANOSECONDS)
        sched_yield();
    else
        supply_clock_sleep(POLL_PAUSE_SECONDS);
}

#endif

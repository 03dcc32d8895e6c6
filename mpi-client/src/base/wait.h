/**
 * A wait: polls something again and again, until it is there, the time is over, or the program interrupts.
 *
 *     struct wait wait = supply__wait_begin(limit);
 *     while ((status = poll()) == SUPPLY_AGAIN)
 *         if ((ended = supply__wait_more(&wait)) != SUPPLY_OK) return fail(ended);
 *
 * Polls become rarer the longer it lasts, down to one each 10 ms.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "supply_options.h"

/** options.interrupted of the program, which may be NULL. */
struct interruption {
    bool (*interrupted)(void *context);
    void *context;
};

/** Asks the program whether to end a wait. */
static inline bool supply__is_interrupted(const struct interruption *by) {
    return by->interrupted != NULL && by->interrupted(by->context);
}

/** What ends a wait. */
struct wait_limit {
    double seconds; /**< INFINITY: no time limit */
    struct interruption interruption;
};

struct wait {
    struct interruption interruption;
    int64_t end;      /**< of the time limit (supply__clock_now) */
    int64_t part_end; /**< of this part of a wait that the program continues later */
    int64_t polled;   /**< just before the last poll */
    int64_t since;    /**< the begin of the wait, or its last progress */
    int64_t spin;     /**< nanoseconds from `since`, in which a pause only yields the core */
    int64_t pause;    /**< nanoseconds of a later pause, at least */
    int fd;           /**< ends a pause that does not spin, if there is something to read; -1: nothing does */
};

/** For what answers soon if other processes are ready: spins for 1 ms, then polls every 50 us. */
struct wait supply__wait_begin(struct wait_limit limit);

/** Polls every `seconds`, without spinning. */
struct wait supply__wait_begin_slow(struct wait_limit limit, double seconds);

/**
 * Pauses before the next poll. SUPPLY_OK: poll. Else the wait is over: _TIMEOUT, SUPPLY_INTERRUPTED; SUPPLY_AGAIN: this
 * part is over; _SYSTEM: the descriptor cannot be polled. errno changes only with the last one and SUPPLY_OK.
 *
 * The time is that before the last poll, so a process that was suspended past its limit finds what came meanwhile.
 */
supply_status_t supply__wait_more(struct wait *wait);

/** Something has come, and more may come soon: spins again. */
void supply__wait_progressed(struct wait *wait);

/** Pauses once. */
void supply__sleep(double seconds);

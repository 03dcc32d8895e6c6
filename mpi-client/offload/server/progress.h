/**
 * What Spark learns of a command while it is carried out: how far it is, that it still runs, and the last words of a
 * rank that a signal ends. A thread of its own sends the heartbeats, twice a second, and notices that Spark no longer
 * waits.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "channel.h"

struct progress {
    _Atomic uint64_t step;
    _Atomic uint64_t of;      /**< 0: unknown */
    atomic_bool is_cancelled; /**< Spark no longer waits, or a signal asks this program to end */
};

static inline void progress_set(struct progress *progress, uint64_t step, uint64_t of) {
    atomic_store(&progress->step, step);
    atomic_store(&progress->of, of);
}

struct heartbeat {
    struct progress *progress;
    struct channel *channel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool is_running;
    bool stop;
};

/**
 * Without a thread there are no heartbeats, and Spark waits until its timeout. If a signal asks this program to end and
 * the command is still there some seconds later, the signal ends the program. Progress and channel must live until
 * heartbeat_stop().
 */
void heartbeat_start(struct heartbeat *heartbeat, struct progress *progress, struct channel *channel);
void heartbeat_stop(struct heartbeat *heartbeat);

/* The last words of a rank that a signal, or exit(), ends while it runs a routine. */

/** Installs the handlers of exit() and of the signals of faults. */
void crash_install(void);

/**
 * From now on an end writes {"ended": true, "error": "TEXT signal: SIGSEGV"} to this descriptor. NULL: no routine runs.
 * The text is copied.
 */
void crash_report_to(int connection, const char *text);

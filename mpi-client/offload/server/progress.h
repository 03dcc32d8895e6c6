/** What a command that is being carried out and its heartbeats tell each other. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
    _Atomic uint64_t step;
    _Atomic uint64_t of;      /**< 0: unknown */
    atomic_bool is_cancelled; /**< Spark no longer waits, or a signal asks this program to end */
};

static inline void progress_set(struct progress *progress, uint64_t step, uint64_t of) {
    atomic_store(&progress->step, step);
    atomic_store(&progress->of, of);
}

#endif

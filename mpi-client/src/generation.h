/** The random number that tells a file from every earlier one of its name. */
#ifndef SUPPLY_GENERATION_H
#define SUPPLY_GENERATION_H

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "failure.h"

/** Makes a new one, not 0. SUPPLY_OK or _SYSTEM. */
static inline supply_status_t supply_generation_make(uint64_t *generation, struct failure *failure) {
    do {
        const ssize_t got = getrandom(generation, sizeof *generation, 0);
        if (got < 0 && errno != EINTR) return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "getrandom failed: %m");
        if (got != sizeof *generation) *generation = 0;
    } while (*generation == 0);
    return SUPPLY_OK;
}

#endif

/**
 * The settings of a pair, from the program's options, the environment of its launcher, the config files, and the caches
 * of the processor.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "files/config_files.h"
#include "base/failure.h"
#include "files/folder.h"
#include "base/position.h"
#include "base/wait.h"
#include "net/connection.h"
#include "supply.h"

/* The random number that tells a file from every earlier one of its name. */

/** Makes a new one, not 0. SUPPLY_OK or _SYSTEM. */
static inline supply_status_t supply__generation_make(uint64_t *generation, struct failure *failure) {
    do {
        const ssize_t got = getrandom(generation, sizeof *generation, 0);
        if (got < 0 && errno != EINTR) return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "getrandom failed: %m");
        if (got != sizeof *generation) *generation = 0;
    } while (*generation == 0);
    return SUPPLY_OK;
}

/** A variable of the environment; NULL: it is not set, or empty, as YAML and scripts leave it. */
static inline const char *supply__variable(const char *name) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

/* Ranks from the environment that a launcher sets for its processes. */

/** The rank in MPI_COMM_WORLD; -1: no launcher has set it. supply_local_rank() is the same for the local rank. */
int supply__launcher_rank(void);

/**
 * Adds to a failure by which variables this is the local rank that it is: one may be left over from another launcher.
 * options: of the program.
 */
void supply__explain_local_rank(const supply_options_t *options, struct failure *failure);

/* The caches of a processor, and the ring that suits them (ring=auto). */

/** Where the kernel describes the caches of the first processor (sysfs, ABI/testing/sysfs-devices-system-cpu). */
#define CACHES_FOLDER "/sys/devices/system/cpu/cpu0/cache"

/**
 * Bytes of a ring that is larger than the task's own cache (L2) and fits the part of the last cache (L3) that belongs
 * to two processors, the task's and the rank's, but at most all of it: 4 to 16 MiB. 0: that folder describes no such
 * cache.
 */
uint64_t supply__ring_for_caches(const char *folder);

/* The settings of a pair, from the program's options and the environment. */

/** Everything that opening a pair needs. */
struct settings {
    struct config_line files; /**< the three paths; its other fields are not used */
    int local_rank;           /**< -1: not known */
    int rank;                 /**< -1: not known */
    int ranks;                /**< of the job; 0: not known */
    struct address *address;  /**< of the run, if its task is elsewhere: the pair has no files then; or NULL */
    double timeout;           /**< seconds */
    struct interruption interruption;
    uint64_t block_bytes;
    uint32_t block_count;
    gid_t group;         /**< may use the pair's files, too; or NO_GROUP */
    uint64_t generation; /**< not 0 */
    uint32_t rank_pid;
    struct position start;
    struct named_path results_folder; /**< of the results of this pair */
    bool exchange;                    /**< the program exchanges its elements */
    uint32_t reader;                  /**< of a shared ring: which of its readers this is */
    uint32_t readers;                 /**< of a shared ring, at least 2; 0: it is this rank's alone */
    struct named_path ring_file;      /**< the mapped file of reader 0, unless this is it */
};

/**
 * Fills in files, local_rank and rank. given may be NULL: nothing is set. SUPPLY_OK, or _ARGUMENT, _CONFIG, _MEMORY.
 * Free *settings with supply__settings_free() in any case.
 */
supply_status_t supply__settings_files(const supply_options_t *given, struct settings *settings,
                                       struct failure *failure);

/** Fills in everything. Otherwise as supply__settings_files(). */
supply_status_t supply__settings(const supply_options_t *given, struct settings *settings, struct failure *failure);

void supply__settings_free(struct settings *settings);

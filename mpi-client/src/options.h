/** The settings of a pair, from the program's options and the environment. */
#ifndef SUPPLY_OPTIONS_H
#define SUPPLY_OPTIONS_H

#include "config_files.h"
#include "position.h"
#include "supply.h"
#include "groups.h"

/** Everything that opening a pair needs. */
struct settings {
    struct config_line files; /**< the three paths; its other fields are not used */
    int local_rank;           /**< -1: not known */
    int rank;                 /**< -1: not known */
    double timeout;           /**< seconds */
    bool (*interrupted)(void *context);
    void *interrupted_context;
    uint64_t block_bytes;
    uint32_t block_count;
    gid_t group;         /**< may use the pair's files, too; or NO_GROUP */
    uint64_t generation; /**< not 0 */
    uint32_t rank_pid;
    struct position start;
    struct named_path results_folder; /**< of the results of this pair */
    bool exchange;                    /**< the program exchanges its elements */
};

/**
 * Fills in files, local_rank and rank. given may be NULL: nothing is set. SUPPLY_OK, or _ARGUMENT, _CONFIG, _MEMORY.
 * Free *settings with supply_settings_free() in any case.
 */
supply_status_t supply_settings_files(const supply_options_t *given, struct settings *settings,
                                      struct failure *failure);

/** Fills in everything. Otherwise as supply_settings_files(). */
supply_status_t supply_settings(const supply_options_t *given, struct settings *settings, struct failure *failure);

void supply_settings_free(struct settings *settings);

/**
 * The program's struct as this library's: the program may have been built with an older or newer header. given may be
 * NULL: nothing is set. SUPPLY_OK, or _ARGUMENT. Exported for libsupply_remote.
 */
SUPPLY_API supply_status_t supply_options_complete(const supply_options_t *given, supply_options_t *options,
                                                   struct failure *failure);

/** The time limit in seconds, of the options or of the environment. SUPPLY_OK, or _CONFIG. Exported as well. */
SUPPLY_API supply_status_t supply_options_timeout(const supply_options_t *options, double *timeout,
                                                  struct failure *failure);

/** Asks the program whether to end a wait. */
static inline bool supply_is_interrupted(const struct settings *settings) {
    return settings->interrupted != NULL && settings->interrupted(settings->interrupted_context);
}

#endif

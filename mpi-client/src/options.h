/** From what the program and the environment say to what a pair needs. */
#ifndef SUPPLY_OPTIONS_H
#define SUPPLY_OPTIONS_H

#include "config_files.h"
#include "position.h"
#include "supply.h"
#include "users.h"

/** Everything that opening a pair needs. */
struct settings {
    struct config_line files; /**< the three paths (the rest of it is not used) */
    int local_rank;           /**< -1: not known */
    int rank;                 /**< -1: not known */
    double timeout;
    uint64_t block_bytes;
    uint32_t block_count;
    gid_t group;         /**< that may use the pair's files, too, or NO_GROUP */
    uint64_t generation; /**< not 0 */
    uint32_t rank_pid;
    struct position start;
};

/**
 * Which pair: fills in files and local_rank. SUPPLY_OK, or _ARGUMENT, _CONFIG, _MEMORY.
 * *settings is to be freed by supply_settings_free() either way.
 */
supply_status_t supply_settings_files(const supply_options_t *options, struct settings *settings,
                                      struct failure *failure);

/** supply_settings_files() and all the rest. */
supply_status_t supply_settings(const supply_options_t *options, struct settings *settings, struct failure *failure);

void supply_settings_free(struct settings *settings);

#endif

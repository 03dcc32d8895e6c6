/** The files that a dead rank left of a pair. */
#ifndef SUPPLY_STALE_H
#define SUPPLY_STALE_H

#include "config_files.h"

/** By enum file_kind: which of the three files of a pair a dead rank left. */
struct stale_files {
    bool left[3];
};

/**
 * Finds these files; changes nothing. SUPPLY_OK, or _IN_USE (the pair lives), _CONFIG (a file there must not be
 * removed), _SYSTEM, _MEMORY: then left is false for all three.
 */
supply_status_t supply_stale_find(const struct config_line *files, struct stale_files *stale, struct failure *failure);

/** Finds and removes these files. left: those that were removed. */
supply_status_t supply_stale_remove(const struct config_line *files, struct stale_files *stale,
                                    struct failure *failure);

#endif

/** What a dead rank left of a pair. */
#ifndef SUPPLY_STALE_H
#define SUPPLY_STALE_H

#include "config_files.h"

/** By enum file_kind: which of the three files of a pair a dead rank left. */
struct stale_files {
    bool left[3];
};

/**
 * Finds what a dead rank left; changes nothing. SUPPLY_OK, or _IN_USE (the pair lives), _CONFIG (what stands there is
 * not ours to remove), _SYSTEM, _MEMORY: then nothing is said to be left.
 */
supply_status_t supply_stale_find(const struct config_line *files, struct stale_files *stale, struct failure *failure);

/** The same, and removes it. What is left is then what was there and is gone. */
supply_status_t supply_stale_remove(const struct config_line *files, struct stale_files *stale,
                                    struct failure *failure);

#endif

/** Checks of supply-doctor: can this user's ranks open the pairs, and can the executors use them? */
#ifndef DIAGNOSE_PAIRS_H
#define DIAGNOSE_PAIRS_H

#include "command_line.h"
#include "diagnose_memory.h"

/**
 * Checks the sizes on the config lines, the folders, the groups, and the files that already exist. Fills the first
 * *count entries of needs, which has one entry for each line; a line with an error has none.
 */
void diagnose_pairs(struct diagnosis *diagnosis, const struct pair_selection *selection,
                    const struct config_lines *lines, struct mapped_file_need *needs, size_t *count);

#endif

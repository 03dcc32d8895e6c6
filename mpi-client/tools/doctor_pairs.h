/** Checks of supply-doctor: could this user's ranks open the pairs, and the executors use them? */
#ifndef DOCTOR_PAIRS_H
#define DOCTOR_PAIRS_H

#include "command_line.h"
#include "doctor_memory.h"

/**
 * The sizes on the config lines; folders; groups; what stands at the files' names. needs has room for every line;
 * *count says for how many it is known.
 */
void doctor_pairs(struct findings *findings, const struct which_pairs *which, const struct config_lines *lines,
                  struct mapped_file_need *needs, size_t *count);

#endif

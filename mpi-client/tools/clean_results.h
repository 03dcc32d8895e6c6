/** The results that supply-clean removes (proto/PROTOCOL.md, "Removal"). */
#ifndef CLEAN_RESULTS_H
#define CLEAN_RESULTS_H

#include "cleaning.h"
#include "config_files.h"

/**
 * Removes the results of a dead pair that no process uses, and prints the path of each. False: one is left that is in
 * use or cannot be removed, and standard error says why.
 */
bool clean_results(const struct config_line *line, const struct cleaning *cleaning);

#endif

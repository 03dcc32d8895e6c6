/** The results that supply-clean removes (proto/PROTOCOL.md, "Removal"). */
#ifndef CLEAN_RESULTS_H
#define CLEAN_RESULTS_H

#include <stdbool.h>

#include "config_files.h"

/** How to clean. */
struct cleaning {
    const char *tool;            /**< its name, for messages */
    const char *results_folder;  /**< NULL: not given */
    const char *resident_folder; /**< NULL: not given */
    bool dry_run;                /**< prints what would be removed, and removes nothing */
    bool keep_results;           /**< keeps sealed results */
};

/**
 * Removes the results of a dead pair that no process uses, and prints the path of each. False: one is left that is in
 * use or cannot be removed, and standard error says why.
 */
bool clean_results(const struct config_line *line, const struct cleaning *cleaning);

#endif

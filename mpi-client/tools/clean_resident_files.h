/** What supply-clean is asked for, and the resident files that it removes (proto/PROTOCOL.md, "Resident files"). */
#pragma once

#include <stdbool.h>

#include "files/config_files.h"

/** How to clean. */
struct cleaning {
    const char *tool;            /**< its name, for messages */
    const char *results_folder;  /**< NULL: not given */
    const char *resident_folder; /**< NULL: not given */
    bool dry_run;                /**< prints what would be removed, and removes nothing */
    bool keep_results;           /**< keeps sealed results */
    bool unread_results;         /**< removes sealed results that nobody reads, also of a living Spark */
};

/**
 * Removes the pair's resident files, beside its mapped file and from cleaning->resident_folder, if its rank is dead and
 * no process reads them, and prints the path of each. The pair's own files may belong to another user. Kept files stay.
 * False: one is left that is in use or cannot be removed, and standard error says why.
 */
bool clean_resident_files(const struct config_line *line, const struct cleaning *cleaning);

#define RESIDENT_SUFFIX ".resident"
#define UNSEALED_RESIDENT_SUFFIX RESIDENT_SUFFIX ".unsealed"

/** Path of the pair's file with that suffix in the folder; the caller frees it. NULL: out of memory. */
char *resident_file_path(const char *folder, const struct named_path *mapped_file, const char *suffix);

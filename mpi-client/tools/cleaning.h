/** What supply-clean is asked for. */
#ifndef CLEANING_H
#define CLEANING_H

#include <stdbool.h>

/** How to clean. */
struct cleaning {
    const char *tool;            /**< its name, for messages */
    const char *results_folder;  /**< NULL: not given */
    const char *resident_folder; /**< NULL: not given */
    bool dry_run;                /**< prints what would be removed, and removes nothing */
    bool keep_results;           /**< keeps sealed results */
    bool unread_results;         /**< removes sealed results that nobody reads, also of a living Spark */
};

#endif

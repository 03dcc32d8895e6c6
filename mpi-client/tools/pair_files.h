/** Which pairs an observer looks at. */
#ifndef PAIR_FILES_H
#define PAIR_FILES_H

#include "config_files.h"

/** The files of one pair. */
struct pair_files {
    int local_rank; /**< line of the config files; -1: not known, the pair was found */
    char *mapped_file;
    char *request_pipe;      /**< NULL: not known */
    char *notification_pipe; /**< NULL: not known */
};

struct pair_list {
    struct pair_files *pairs;
    size_t count;
};

/** The pairs of the config files; local_rank -1: all of them, else that line. False: out of memory. */
bool pair_list_of_config(struct pair_list *list, const struct config_lines *lines, int local_rank);

/**
 * The pairs in a folder and in the folders below it, at most two deep: regular files that begin as a rank's do, or that
 * are called *.mapped. Their pipes are looked for under the names that launch/make-configs gives them. denied (may be
 * NULL) is told of each folder that can not be looked into. False: errno says why not.
 */
bool pair_list_find(struct pair_list *list, const char *folder, void denied(const char *folder));

/** Also for a list that is {0}, or could not be made. */
void pair_list_free(struct pair_list *list);

#endif

/** The pairs that an observer shows: those of config files, or those in a folder. */
#ifndef PAIR_FILES_H
#define PAIR_FILES_H

#include "files/config_files.h"

/** The files of one pair. */
struct pair_files {
    int local_rank; /**< line of the config files; -1: not known, the pair was found in a folder */
    char *mapped_file;
    char *request_pipe;      /**< NULL: not known */
    char *notification_pipe; /**< NULL: not known */
};

struct pair_list {
    struct pair_files *pairs;
    size_t count;
};

/** Lists the pairs of the config files; local_rank -1: all of them, else only that line. False: out of memory. */
bool pair_list_of_config(struct pair_list *list, const struct config_lines *lines, int local_rank);

/**
 * Lists the pairs in a folder and up to two levels below: regular files that begin with the magic bytes, or are named
 * *.mapped. Their pipes are expected under the names that launch/make-configs gives them. Calls denied (may be NULL)
 * for each folder that cannot be read. False and errno on failure.
 */
bool pair_list_find(struct pair_list *list, const char *folder, void denied(const char *folder));

/** Also frees a list that is {0}, or that could not be made. */
void pair_list_free(struct pair_list *list);

#endif

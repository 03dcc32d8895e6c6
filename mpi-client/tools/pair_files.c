/**
 * Lists pairs, from config files or from a folder. A file in a folder is taken for a pair by its first bytes or its
 * name.
 */
#include "pair_files.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/folder.h"
#include "layout.h"
#include "pair_snapshot.h"

/* Levels below the folder: each run has a folder of its own, and a user may keep several runs in one folder. */
#define DEPTH 2

#define MAPPED_SUFFIX ".mapped"

static void free_pair(struct pair_files *pair) {
    free(pair->mapped_file);
    free(pair->request_pipe);
    free(pair->notification_pipe);
}

static bool pair_list_append(struct pair_list *list, struct pair_files pair) {
    struct pair_files *grown = reallocarray(list->pairs, list->count + 1, sizeof *grown);
    if (grown != NULL) list->pairs = grown;
    if (grown == NULL || pair.mapped_file == NULL) {
        free_pair(&pair);
        return false;
    }
    list->pairs[list->count++] = pair;
    return true;
}

bool pair_list_of_config(struct pair_list *list, const struct config_lines *lines, int local_rank) {
    *list = (struct pair_list){0};
    for (size_t i = 0; i < lines->count; i++) {
        if (local_rank >= 0 && (size_t)local_rank != i) continue;
        const struct config_line *line = &lines->lines[i];
        if (!pair_list_append(list, (struct pair_files){(int)i, strdup(line->mapped_file.path),
                                                        strdup(line->request_pipe.path),
                                                        strdup(line->notification_pipe.path)}))
            return false;
    }
    return true;
}

static bool has_suffix(const char *name) {
    const size_t length = strlen(name), suffix = strlen(MAPPED_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, MAPPED_SUFFIX) == 0;
}

static bool begins_as_mapped_file(const char *path) {
    char magic[sizeof MAGIC - 1];
    const int fd = supply__open_regular(AT_FDCWD, path);
    if (fd < 0) return false;
    const bool read = pread(fd, magic, sizeof magic, 0) == sizeof magic;
    close(fd);
    return read && memcmp(magic, MAGIC, sizeof magic) == 0;
}

static bool append_found(struct pair_list *list, const char *path) {
    struct pair_files pair = {.local_rank = -1, .mapped_file = strdup(path)};
    if (has_suffix(path)) {
        const int length = (int)(strlen(path) - strlen(MAPPED_SUFFIX));
        if (asprintf(&pair.request_pipe, "%.*s.request", length, path) < 0) pair.request_pipe = NULL;
        if (asprintf(&pair.notification_pipe, "%.*s.notification", length, path) < 0) pair.notification_pipe = NULL;
    }
    return pair_list_append(list, pair);
}

static bool visit(struct pair_list *list, FTS *tree, FTSENT *entry, void denied(const char *folder)) {
    switch (entry->fts_info) {
        case FTS_D:
            if (entry->fts_level > DEPTH) fts_set(tree, entry, FTS_SKIP);
            return true;
        case FTS_DNR:
            if (denied != NULL) denied(entry->fts_path);
            return true;
        case FTS_F:
            if (!has_suffix(entry->fts_name) && !begins_as_mapped_file(entry->fts_path)) return true;
            return append_found(list, entry->fts_path);
        case FTS_ERR:
            errno = entry->fts_errno;
            return false;
        default:
            return true;
    }
}

static int by_name(const FTSENT **one, const FTSENT **other) {
    return strverscmp((*one)->fts_name, (*other)->fts_name);
}

bool pair_list_find(struct pair_list *list, const char *folder, void denied(const char *folder)) {
    *list = (struct pair_list){0};
    if (access(folder, F_OK) != 0) return false;
    char *const roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_XDEV, by_name);
    if (tree == NULL) return false;
    bool listed = true;
    FTSENT *entry = NULL;
    while (listed && (errno = 0, entry = fts_read(tree)) != NULL) listed = visit(list, tree, entry, denied);
    const int error = errno;
    fts_close(tree);
    errno = error;
    return entry == NULL && error == 0;
}

void pair_list_free(struct pair_list *list) {
    for (size_t i = 0; i < list->count; i++) free_pair(&list->pairs[i]);
    free(list->pairs);
    *list = (struct pair_list){0};
}

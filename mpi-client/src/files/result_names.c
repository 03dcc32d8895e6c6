/**
 * Names of results, and O1 for those that earlier runs of a pair left: they are found by name in the results folder,
 * and removed unless a living process writes one. It runs in the thread that opens.
 */
#include "files/result_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/claimed_file.h"
#include "files/folder.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

/* The length of a valid name in front of the rest of the text; 0: there is none. */
static size_t name_length(const char *text) {
    const size_t length = strspn(text, NAME_CHARACTERS);
    return length <= RESULT_NAME_MAX ? length : 0;
}

bool supply__result_name_is_valid(const char *name) {
    const size_t length = name_length(name);
    return length > 0 && name[length] == '\0';
}

bool supply__result_is_sealed(const struct named_path *path) {
    const size_t length = strlen(path->path), suffix = strlen(UNSEALED_SUFFIX);
    return length < suffix || strcmp(path->path + length - suffix, UNSEALED_SUFFIX) != 0;
}

supply_status_t supply__results_folder(const char *given, const struct named_path *mapped_file,
                                       struct named_path *folder, struct failure *failure) {
    const char *environment = supply__variable("SUPPLY_RESULTS_FOLDER");
    const char *path = given ? given : environment ? environment : mapped_file->path;
    const char *origin = given ? "options" : environment ? "SUPPLY_RESULTS_FOLDER" : mapped_file->origin;
    size_t length = path == mapped_file->path ? (size_t)(strrchr(path, '/') - path) : strlen(path);
    if (path[0] != '/')
        return supply__fail(failure, SUPPLY_ERROR_CONFIG, "the folder of results, '%s' (%s), is not an absolute path",
                            path, origin);
    /* A slash at the end would follow a symbolic link. */
    while (length > 1 && path[length - 1] == '/') length--;
    folder->path = strndup(path, length > 0 ? length : 1);
    folder->origin = strdup(origin);
    if (folder->path != NULL && folder->origin != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* A name has no dot, so the results of the pair `a.b` are not taken for those of the pair `a`. */
static bool is_of_pair(const char *file, const char *pair_name) {
    const size_t pair_length = strlen(pair_name);
    if (strncmp(file, pair_name, pair_length) != 0 || file[pair_length] != '.') return false;
    const char *name = file + pair_length + 1;
    const size_t length = name_length(name);
    return length > 0 &&
           (strcmp(name + length, RESULT_SUFFIX) == 0 || strcmp(name + length, RESULT_SUFFIX UNSEALED_SUFFIX) == 0);
}

static bool names_add(struct result_files *files, const struct named_path *folder, const char *file) {
    struct named_path *grown = reallocarray(files->paths, files->count + 1, sizeof *grown);
    if (grown == NULL) return false;
    files->paths = grown;
    struct named_path *added = &grown[files->count++];
    added->origin = strdup(folder->origin);
    if (asprintf(&added->path, "%s/%s", folder->path, file) < 0) added->path = NULL;
    return added->path != NULL && added->origin != NULL;
}

supply_status_t supply__result_files_find(const struct named_path *folder, const char *pair_name,
                                          struct result_files *files, struct failure *failure) {
    *files = (struct result_files){0};
    const int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return SUPPLY_OK;
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (listing == NULL) {
        supply__fail(
            failure, SUPPLY_ERROR_SYSTEM,
            "the folder of results %s (%s) cannot be listed: %m: choose another folder (SUPPLY_RESULTS_FOLDER)",
            folder->path, folder->origin);
        if (fd >= 0) close(fd);
        return SUPPLY_ERROR_SYSTEM;
    }
    supply_status_t status = SUPPLY_OK;
    for (struct dirent *entry; status == SUPPLY_OK && (entry = readdir(listing)) != NULL;)
        if (is_of_pair(entry->d_name, pair_name) && !names_add(files, folder, entry->d_name))
            status = supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    closedir(listing);
    return status;
}

void supply__result_files_free(struct result_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->paths[i].path);
        free(files->paths[i].origin);
    }
    free(files->paths);
    *files = (struct result_files){0};
}

static supply_status_t remove_one(const struct named_path *path, struct failure *failure) {
    struct claimed_file file;
    const supply_status_t status = supply__claim_stale(&file, FILE_RESULT, path, failure);
    if (status != SUPPLY_OK || supply__claim_remove(&file)) return status;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "result %s (%s) of an earlier run cannot be removed: %m",
                        path->path, path->origin);
}

static supply_status_t remove_listed(const struct settings *settings, bool sealed, struct failure *failure) {
    struct result_files files;
    supply_status_t status = supply__result_files_find(
        &settings->results_folder, supply__folder_name(&settings->files.mapped_file), &files, failure);
    for (size_t i = 0; i < files.count && status == SUPPLY_OK; i++)
        if (supply__result_is_sealed(&files.paths[i]) == sealed) status = remove_one(&files.paths[i], failure);
    supply__result_files_free(&files);
    return status;
}

supply_status_t supply__old_results_remove(const struct settings *settings, struct failure *failure) {
    /* A rank that has closed its pair may seal a result between two lists. */
    TRY(remove_listed(settings, false, failure));
    return remove_listed(settings, true, failure);
}

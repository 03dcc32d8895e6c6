#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_PATH needs no right to read the folder. Links are not followed. */
#define OPEN_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The group may look up the files of the folder, and change nothing. */
#define GROUP_MODE (S_IRGRP | S_IXGRP)

/** Which folder, of which file. */
struct place {
    const char *what;
    const struct named_path *file;
    const char *path; /* of the folder, or of one above it */
    struct failure *failure;
};

__attribute__((format(printf, 2, 3))) static supply_status_t fail(const struct place *place, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    supply_fail_at(place->failure, SUPPLY_ERROR_CONFIG, place->what, place->file, place->path, format, arguments);
    va_end(arguments);
    return SUPPLY_ERROR_CONFIG;
}

const char *supply_folder_name(const struct named_path *file) { return strrchr(file->path, '/') + 1; }

/* The path of the file's folder, which the caller frees; NULL and a failure. */
static char *path_of(const char *what, const struct named_path *file, struct failure *failure) {
    const char *name = supply_folder_name(file);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        supply_fail(failure, SUPPLY_ERROR_CONFIG, "%s %s (%s) is the path of a folder: it must name a file", what,
                    file->path, file->origin);
        return NULL;
    }
    size_t length = (size_t)(name - file->path) - 1;
    char *path = strndup(file->path, length > 0 ? length : 1);
    if (path == NULL) supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return path;
}

static supply_status_t share(const struct place *place, int folder, gid_t group) {
    char name[USER_TEXT_BYTES];
    if (fchownat(folder, "", (uid_t)-1, group, AT_EMPTY_PATH) != 0)
        return fail(place, "cannot be given to the group %s: %m: is this user a member of it? (group=, --group)",
                    supply_group_text(group, name));
    if (fchmodat(folder, ".", S_IRWXU | GROUP_MODE, 0) != 0) return fail(place, "cannot be chmodded: %m");
    return SUPPLY_OK;
}

/* Creates one folder, if it is missing. */
static supply_status_t make(const struct place *place, gid_t group) {
    if (mkdir(place->path, S_IRWXU) != 0) {
        if (errno == EEXIST || access(place->path, F_OK) == 0) return SUPPLY_OK;
        return fail(place, "cannot be created: %m: choose another folder");
    }
    if (group == NO_GROUP) return SUPPLY_OK;
    int folder = open(place->path, OPEN_FLAGS);
    if (folder < 0) return fail(place, "cannot be opened: %m: choose another folder");
    supply_status_t status = share(place, folder, group);
    close(folder);
    return status;
}

static supply_status_t make_all(const struct place *place, char *path, gid_t group) {
    supply_status_t status = SUPPLY_OK;
    for (char *slash = path + 1; status == SUPPLY_OK && (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        status = make(place, group);
        *slash = '/';
    }
    return status == SUPPLY_OK ? make(place, group) : status;
}

/* A user who can write to a folder can replace its files, unless the folder is sticky. */
static supply_status_t check_ours(const struct place *place, const struct stat *entry) {
    char owner[USER_TEXT_BYTES];
    if (entry->st_uid != geteuid())
        return fail(place, "belongs to another user, %s: name a folder of your own",
                    supply_user_text(entry->st_uid, owner));
    if ((entry->st_mode & (S_IWGRP | S_IWOTH)) != 0 && (entry->st_mode & S_ISVTX) == 0)
        return fail(place, "can be written by other users (mode %04o): chmod go-w it, or name another one",
                    entry->st_mode & 07777);
    return SUPPLY_OK;
}

static bool is_open_to(const struct stat *entry, gid_t group) {
    const mode_t wanted = entry->st_gid == group ? GROUP_MODE : GROUP_MODE >> 3;
    return (entry->st_mode & wanted) == wanted;
}

static supply_status_t check(const struct place *place, int folder, gid_t group) {
    struct stat entry;
    if (fstatat(folder, "", &entry, AT_EMPTY_PATH) != 0) return fail(place, "cannot be examined: %m");
    supply_status_t status = check_ours(place, &entry);
    /* Also a folder that existed: another rank may be, or have died, between creating and sharing it. */
    if (status == SUPPLY_OK && group != NO_GROUP && !is_open_to(&entry, group)) status = share(place, folder, group);
    if (status == SUPPLY_OK && faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        status = fail(place, "cannot be written: %m: choose another folder");
    return status;
}

static supply_status_t fail_to_open(const struct place *place) {
    struct stat entry;
    int error = errno;
    if (lstat(place->path, &entry) == 0 && S_ISLNK(entry.st_mode))
        return fail(place, "is a symbolic link, which is never followed: name the folder that it leads to");
    errno = error;
    return fail(place, "cannot be opened: %m: choose another folder");
}

supply_status_t supply_folder_prepare(int *folder, const char *what, const struct named_path *file, gid_t group,
                                      struct failure *failure) {
    *folder = -1;
    char *path = path_of(what, file, failure);
    if (path == NULL) return failure->status;
    const struct place place = {what, file, path, failure};
    supply_status_t status = make_all(&place, path, group);
    if (status == SUPPLY_OK && (*folder = open(path, OPEN_FLAGS)) < 0) status = fail_to_open(&place);
    if (status == SUPPLY_OK) status = check(&place, *folder, group);
    free(path);
    return status;
}

supply_status_t supply_folder_find(int *folder, const char *what, const struct named_path *file,
                                   struct failure *failure) {
    char *path = path_of(what, file, failure);
    *folder = -1;
    if (path == NULL) return failure->status;
    const struct place place = {what, file, path, failure};
    supply_status_t status = SUPPLY_OK;
    *folder = open(path, OPEN_FLAGS);
    if (*folder >= 0)
        status = check(&place, *folder, NO_GROUP);
    else if (errno != ENOENT)
        status = fail_to_open(&place);
    free(path);
    return status;
}

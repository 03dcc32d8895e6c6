/**
 * Creates missing folders, opens the file's own folder without following a link, and checks that only its own user can
 * write to it. Paths and groups come from users. It runs in the thread that opens.
 */
#include "files/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_lock.h"

/* A user's entry fits easily. If one does not, its number stands for it. */
#define ENTRY_BYTES 4096

/* A group lists all its members; this is enough for any. */
#define GROUP_BYTES_MAX (64u << 20)

const char *supply__user_text(uid_t user, char text[USER_TEXT_BYTES]) {
    char buffer[ENTRY_BYTES];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(user, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
        snprintf(text, USER_TEXT_BYTES, "%s (uid %u)", found->pw_name, (unsigned)user);
    else
        snprintf(text, USER_TEXT_BYTES, "uid %u", (unsigned)user);
    return text;
}

/* Looks up a group by its name, or its number if name is NULL. 0, with *found NULL if there is none; or an errno. */
static int look_up(const char *name, gid_t number, struct group *entry, char **buffer, struct group **found) {
    int error = ERANGE;
    for (size_t bytes = ENTRY_BYTES; error == ERANGE && bytes <= GROUP_BYTES_MAX; bytes *= 2) {
        char *grown = realloc(*buffer, bytes);
        if (grown == NULL) return ENOMEM;
        *buffer = grown;
        error =
            name ? getgrnam_r(name, entry, *buffer, bytes, found) : getgrgid_r(number, entry, *buffer, bytes, found);
    }
    return error;
}

const char *supply__group_text(gid_t group, char text[USER_TEXT_BYTES]) {
    const int error = errno;
    struct group entry, *found = NULL;
    char *buffer = NULL;
    if (look_up(NULL, group, &entry, &buffer, &found) == 0 && found != NULL)
        snprintf(text, USER_TEXT_BYTES, "%s", found->gr_name);
    else
        snprintf(text, USER_TEXT_BYTES, "%u", (unsigned)group);
    free(buffer);
    errno = error;
    return text;
}

supply_status_t supply__group_find(const char *name, const char *origin, gid_t *group, struct failure *failure) {
    struct group entry, *found = NULL;
    char *buffer = NULL;
    int error = look_up(name, NO_GROUP, &entry, &buffer, &found);
    if (error == 0 && found != NULL) *group = found->gr_gid;
    free(buffer);
    if (error == ENOMEM) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    if (error == 0 && found != NULL) return SUPPLY_OK;

    char *end;
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    if (*name < '0' || *name > '9' || *end != '\0' || errno != 0 || number >= NO_GROUP)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s: there is no group '%s' on this node: set group= to a name or number that "
                            "'getent group' knows",
                            origin, name);
    *group = (gid_t)number;
    return SUPPLY_OK;
}

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

__attribute__((format(printf, 2, 3))) static supply_status_t folder_fail(const struct place *place, const char *format,
                                                                         ...) {
    va_list arguments;
    va_start(arguments, format);
    supply__fail_at(place->failure, SUPPLY_ERROR_CONFIG, place->what, place->file, place->path, format, arguments);
    va_end(arguments);
    return SUPPLY_ERROR_CONFIG;
}

const char *supply__folder_name(const struct named_path *file) { return strrchr(file->path, '/') + 1; }

bool supply__folder_has(int folder, const char *name, dev_t device, ino_t inode) {
    struct stat entry;
    return fstatat(folder, name, &entry, AT_SYMLINK_NOFOLLOW) == 0 && entry.st_dev == device && entry.st_ino == inode;
}

int supply__open_regular(int folder, const char *name) {
    const int place = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0) return -1;
    struct stat entry;
    const bool is_regular = fstat(place, &entry) == 0 && S_ISREG(entry.st_mode);
    const int fd = is_regular ? supply__reopen(place, O_RDONLY | O_NONBLOCK) : -1;
    const int error = is_regular ? errno : EINVAL;
    close(place);
    errno = error;
    return fd;
}

bool supply__is_open_to(const struct stat *file, gid_t group, mode_t others) {
    const mode_t wanted = file->st_gid == group ? others << 3 : others;
    return (file->st_mode & wanted) == wanted;
}

/* The path of the file's folder, which the caller frees; NULL and a failure. */
static char *folder_path_of(const char *what, const struct named_path *file, struct failure *failure) {
    const char *name = supply__folder_name(file);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s %s (%s) is the path of a folder: it must name a file", what,
                     file->path, file->origin);
        return NULL;
    }
    size_t length = (size_t)(name - file->path) - 1;
    char *path = strndup(file->path, length > 0 ? length : 1);
    if (path == NULL) supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return path;
}

static supply_status_t share(const struct place *place, int folder, gid_t group) {
    char name[USER_TEXT_BYTES];
    struct stat entry;
    if (fstatat(folder, "", &entry, AT_EMPTY_PATH) != 0) return folder_fail(place, "cannot be examined: %m");
    if (fchownat(folder, "", (uid_t)-1, group, AT_EMPTY_PATH) != 0)
        return folder_fail(place, "cannot be given to the group %s: %m: is this user a member of it? (group=)",
                           supply__group_text(group, name));
    const mode_t kept = entry.st_mode & (S_ISGID | S_ISVTX);
    if (fchmodat(folder, ".", kept | S_IRWXU | GROUP_MODE, 0) != 0) return folder_fail(place, "cannot be chmodded: %m");
    return SUPPLY_OK;
}

/* Creates one folder, if it is missing. */
static supply_status_t folder_make(const struct place *place, gid_t group) {
    if (mkdir(place->path, S_IRWXU) != 0) {
        if (errno == EEXIST || access(place->path, F_OK) == 0) return SUPPLY_OK;
        return folder_fail(place, "cannot be created: %m: choose another folder");
    }
    if (group == NO_GROUP) return SUPPLY_OK;
    int folder = open(place->path, OPEN_FLAGS);
    if (folder < 0) return folder_fail(place, "cannot be opened: %m: choose another folder");
    supply_status_t status = share(place, folder, group);
    close(folder);
    return status;
}

static supply_status_t make_all(const struct place *place, char *path, gid_t group) {
    supply_status_t status = SUPPLY_OK;
    for (char *slash = path + 1; status == SUPPLY_OK && (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        status = folder_make(place, group);
        *slash = '/';
    }
    return status == SUPPLY_OK ? folder_make(place, group) : status;
}

/* A user who can write to a folder can replace its files, unless the folder is sticky. */
static supply_status_t folder_check_ours(const struct place *place, const struct stat *entry) {
    char owner[USER_TEXT_BYTES];
    if (entry->st_uid != geteuid())
        return folder_fail(place, "belongs to another user, %s: name a folder of your own",
                           supply__user_text(entry->st_uid, owner));
    if ((entry->st_mode & (S_IWGRP | S_IWOTH)) != 0 && (entry->st_mode & S_ISVTX) == 0)
        return folder_fail(place, "can be written by other users (mode %04o): chmod go-w it, or name another one",
                           entry->st_mode & 07777);
    return SUPPLY_OK;
}

static bool is_home(const struct stat *entry) {
    struct stat home;
    const char *path = getenv("HOME");
    return path != NULL && stat(path, &home) == 0 && home.st_dev == entry->st_dev && home.st_ino == entry->st_ino;
}

static supply_status_t folder_check(const struct place *place, int folder, gid_t group) {
    struct stat entry;
    if (fstatat(folder, "", &entry, AT_EMPTY_PATH) != 0) return folder_fail(place, "cannot be examined: %m");
    supply_status_t status = folder_check_ours(place, &entry);
    /* Also a folder that existed: another rank may be, or have died, between creating and sharing it. */
    if (status == SUPPLY_OK && group != NO_GROUP && !supply__is_open_to(&entry, group, S_IROTH | S_IXOTH))
        status = is_home(&entry)
                     ? folder_fail(place, "is the home folder, which the group cannot enter: name a folder in it")
                     : share(place, folder, group);
    if (status == SUPPLY_OK && faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        status = folder_fail(place, "cannot be written: %m: choose another folder");
    return status;
}

static supply_status_t fail_to_open(const struct place *place) {
    struct stat entry;
    int error = errno;
    if (lstat(place->path, &entry) == 0 && S_ISLNK(entry.st_mode))
        return folder_fail(place, "is a symbolic link, which is never followed: name the folder that it leads to");
    errno = error;
    return folder_fail(place, "cannot be opened: %m: choose another folder");
}

supply_status_t supply__folder_prepare(int *folder, const char *what, const struct named_path *file, gid_t group,
                                       struct failure *failure) {
    *folder = -1;
    char *path = folder_path_of(what, file, failure);
    if (path == NULL) return failure->status;
    const struct place place = {what, file, path, failure};
    supply_status_t status = make_all(&place, path, group);
    if (status == SUPPLY_OK && (*folder = open(path, OPEN_FLAGS)) < 0) status = fail_to_open(&place);
    if (status == SUPPLY_OK) status = folder_check(&place, *folder, group);
    free(path);
    return status;
}

supply_status_t supply__folder_find(int *folder, const char *what, const struct named_path *file,
                                    struct failure *failure) {
    char *path = folder_path_of(what, file, failure);
    *folder = -1;
    if (path == NULL) return failure->status;
    const struct place place = {what, file, path, failure};
    supply_status_t status = SUPPLY_OK;
    *folder = open(path, OPEN_FLAGS);
    if (*folder >= 0)
        status = folder_check(&place, *folder, NO_GROUP);
    else if (errno != ENOENT)
        status = fail_to_open(&place);
    free(path);
    return status;
}

/**
 * O1 and W1: claims files. A file is stale if nobody has its lock. Its name is followed in an open folder only, and
 * checked again after the lock is taken, because another rank may claim it at the same moment. It runs in the thread
 * that opens; the locks are those of the files, between processes.
 */
#include "files/claimed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "base/wait.h"
#include "files/file_space.h"
#include "files/folder.h"
#include "layout.h"

/* Ample: a process that creates or removes the same file needs an instant. */
#define RETRY_LIMIT_SECONDS 2.0
#define RETRY_PAUSE_SECONDS 0.001

#define OPEN_FLAGS (O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY)

#define OWNER_MODE (S_IRUSR | S_IWUSR)
/* Nobody but its rank writes a result. */
#define GROUP_MODE(kind) ((kind) == FILE_RESULT ? S_IRGRP : S_IRGRP | S_IWGRP)

enum outcome { CLAIMED, ABSENT, RETRY, FAILED };

const char *supply__file_kind_name(enum file_kind kind) {
    static const char *const names[] = {"mapped file", "request pipe", "notification pipe", "result"};
    return names[kind];
}

static bool is_pipe(const struct claimed_file *file) {
    return file->kind == FILE_REQUEST_PIPE || file->kind == FILE_NOTIFICATION_PIPE;
}

__attribute__((format(printf, 4, 5))) static enum outcome
claim_fail(const struct claimed_file *file, struct failure *failure, supply_status_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    supply__fail_at(failure, status, supply__file_kind_name(file->kind), file->name, NULL, format, arguments);
    va_end(arguments);
    return FAILED;
}

static enum outcome fail_in_use(const struct claimed_file *file, struct failure *failure) {
    uint32_t pid = 0;
    if (!is_pipe(file) &&
        pread(file->fd, &pid, sizeof pid, offsetof(struct mapped_file_header, rank_pid)) != (ssize_t)sizeof pid)
        pid = 0;
    if (pid != 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return claim_fail(
            file, failure, SUPPLY_ERROR_IN_USE,
            "is locked by a process of this user or of the pair's group, and process %u, its rank, is not here: "
            "end the process that has it open (lsof), or name other files",
            pid);
    if (pid != 0)
        return claim_fail(file, failure, SUPPLY_ERROR_IN_USE,
                          "is in use by process %u, another rank: give each run files of its own, or end that process",
                          pid);
    return claim_fail(file, failure, SUPPLY_ERROR_IN_USE,
                      "is in use by another rank that is alive: give each pair files of its own");
}

static enum outcome fail_to_retry(const struct claimed_file *file, struct failure *failure) {
    return claim_fail(
        file, failure, SUPPLY_ERROR_IN_USE,
        "is being made or removed by another process all the time (waited %g s): give each run files of its own",
        RETRY_LIMIT_SECONDS);
}

/* Only the file of a dead rank may be replaced, whatever a config line points at. A pipe has no mark of a rank. */
static enum outcome claim_check_ours(const struct claimed_file *file, const struct stat *entry,
                                     struct failure *failure) {
    if (S_ISLNK(entry->st_mode))
        return claim_fail(file, failure, SUPPLY_ERROR_CONFIG, "is a symbolic link, which is never followed: remove it");
    if (is_pipe(file) ? !S_ISFIFO(entry->st_mode) : !S_ISREG(entry->st_mode))
        return claim_fail(file, failure, SUPPLY_ERROR_CONFIG,
                          "exists and is not a %s: remove it or choose another path",
                          is_pipe(file) ? "named pipe" : "regular file");
    char owner[USER_TEXT_BYTES];
    if (entry->st_uid != geteuid())
        return claim_fail(file, failure, SUPPLY_ERROR_CONFIG,
                          "belongs to another user, %s: have it removed or choose another path",
                          supply__user_text(entry->st_uid, owner));
    return CLAIMED;
}

static enum outcome check_replaceable(const struct claimed_file *file, struct failure *failure) {
    char magic[sizeof MAGIC - 1];
    if (is_pipe(file)) return CLAIMED;
    const char *expected = file->kind == FILE_RESULT ? BLOCK_FILE_MAGIC : MAGIC;
    ssize_t got = pread(file->fd, magic, sizeof magic, 0);
    if (got < 0) return claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be read: %m");
    if (got == 0 || (got == sizeof magic && memcmp(magic, expected, sizeof magic) == 0)) return CLAIMED;
    return claim_fail(file, failure, SUPPLY_ERROR_CONFIG,
                      "exists and was not made by a rank: remove it or choose another path");
}

/* RETRY: another process has it. */
static enum outcome claim_lock(const struct claimed_file *file, off_t byte, struct failure *failure) {
    if (supply__file_lock(file->fd, F_WRLCK, byte) == 0) return CLAIMED;
    if (errno == EAGAIN || errno == EACCES) return RETRY;
    return claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be locked: %m: choose a file system with locks");
}

static bool claim_is_same(const struct claimed_file *file, const struct stat *entry) {
    return entry->st_dev == file->device && entry->st_ino == file->inode;
}

/* The file of that name; a symbolic link is not followed. */
static int examine(const struct claimed_file *file, struct stat *entry) {
    return fstatat(file->folder, supply__folder_name(file->name), entry, AT_SYMLINK_NOFOLLOW);
}

static bool holds(const struct claimed_file *file) {
    return supply__folder_has(file->folder, supply__folder_name(file->name), file->device, file->inode);
}

/*
 * Opens the file, takes the lock that keeps other processes from removing it, and checks that the name still leads to
 * it. The rank's lock is not touched: a task would take its holder for a living rank.
 */
static enum outcome claim_take(struct claimed_file *file, struct failure *failure) {
    struct stat entry;
    if (examine(file, &entry) != 0)
        return errno == ENOENT ? ABSENT : claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be examined: %m");
    file->device = entry.st_dev;
    file->inode = entry.st_ino;
    enum outcome outcome = claim_check_ours(file, &entry, failure);
    if (outcome != CLAIMED) return outcome;
    if (file->fd < 0) file->fd = openat(file->folder, supply__folder_name(file->name), OPEN_FLAGS);
    if (file->fd < 0)
        return errno == ENOENT || errno == ELOOP
                   ? RETRY
                   : claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be opened: %m");
    if (fstat(file->fd, &entry) != 0) return claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be examined: %m");
    if (!claim_is_same(file, &entry)) return RETRY;
    outcome = claim_check_ours(file, &entry, failure);
    if (outcome == CLAIMED) outcome = claim_lock(file, REMOVER_LOCK_BYTE, failure);
    if (outcome == CLAIMED && !holds(file)) outcome = RETRY;
    return outcome;
}

/* The same for a file that a dead rank left. */
static enum outcome take_stale(struct claimed_file *file, struct failure *failure) {
    enum outcome outcome = claim_take(file, failure);
    if (outcome != CLAIMED) return outcome;
    /* A shared lock only tests whether a rank lives. */
    return supply__file_is_locked(file->fd, F_RDLCK, RANK_LOCK_BYTE) ? fail_in_use(file, failure)
                                                                     : check_replaceable(file, failure);
}

/* The same for a file that this process has just created. Takes the rank's lock, too. */
static enum outcome take_made(struct claimed_file *file, struct failure *failure) {
    enum outcome outcome = claim_take(file, failure);
    if (outcome == CLAIMED) outcome = claim_lock(file, RANK_LOCK_BYTE, failure);
    if (outcome == CLAIMED) supply__file_lock(file->fd, F_UNLCK, REMOVER_LOCK_BYTE);
    return outcome;
}

/* Creates the file, and opens a regular one. False: errno; EEXIST: there is one already. */
static bool claim_make(struct claimed_file *file) {
    const char *name = supply__folder_name(file->name);
    if (is_pipe(file)) return mkfifoat(file->folder, name, OWNER_MODE) == 0;
    file->fd = openat(file->folder, name, OPEN_FLAGS | O_CREAT | O_EXCL, OWNER_MODE);
    return file->fd >= 0;
}

/* Sets the modes of the contract, which umask and folder may have changed. */
static enum outcome set_access(const struct claimed_file *file, struct failure *failure) {
    char group[USER_TEXT_BYTES];
    if (file->group != NO_GROUP && fchown(file->fd, (uid_t)-1, file->group) != 0)
        return claim_fail(file, failure, errno == EPERM ? SUPPLY_ERROR_CONFIG : SUPPLY_ERROR_SYSTEM,
                          "cannot be given to the group %s: %m: is this user a member of it? (group=)",
                          supply__group_text(file->group, group));
    if (fchmod(file->fd, file->group != NO_GROUP ? OWNER_MODE | GROUP_MODE(file->kind) : OWNER_MODE) != 0)
        return claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be chmodded: %m");
    return CLAIMED;
}

static void discard(struct claimed_file *file) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

/* Checks first that the name still leads to this file. */
static bool unlink_own(const struct claimed_file *file) {
    return !holds(file) || unlinkat(file->folder, supply__folder_name(file->name), 0) == 0;
}

static enum outcome claim_made(struct claimed_file *file, struct failure *failure) {
    enum outcome outcome = take_made(file, failure);
    if (outcome == CLAIMED) outcome = set_access(file, failure);
    if (outcome == FAILED) unlink_own(file);
    return outcome;
}

static enum outcome claim_once(struct claimed_file *file, struct failure *failure) {
    enum outcome outcome;
    if (claim_make(file))
        outcome = claim_made(file, failure);
    else if (errno != EEXIST)
        return errno == ENOSPC || errno == EDQUOT
                   ? claim_fail(file, failure, SUPPLY_ERROR_NO_SPACE, "cannot be created: %m: choose another folder")
                   : claim_fail(file, failure, SUPPLY_ERROR_SYSTEM, "cannot be created: %m");
    else if ((outcome = take_stale(file, failure)) == CLAIMED) {
        unlink_own(file);
        return RETRY;
    }
    return outcome == ABSENT ? RETRY : outcome;
}

static supply_status_t repeat(enum outcome once(struct claimed_file *, struct failure *), struct claimed_file *file,
                              struct failure *failure) {
    const struct wait_limit limit = {.seconds = RETRY_LIMIT_SECONDS};
    struct wait wait = supply__wait_begin_slow(limit, RETRY_PAUSE_SECONDS);
    enum outcome outcome;
    while ((outcome = once(file, failure)) == RETRY) {
        discard(file);
        if (supply__wait_more(&wait) == SUPPLY_OK) continue;
        outcome = fail_to_retry(file, failure);
        break;
    }
    if (outcome == CLAIMED) return SUPPLY_OK;
    discard(file);
    supply__claim_close(file);
    return outcome == ABSENT ? SUPPLY_OK : failure->status;
}

supply_status_t supply__claim(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                              gid_t group, struct failure *failure) {
    *file = (struct claimed_file){.kind = kind, .name = name, .group = group, .folder = -1, .fd = -1};
    supply_status_t status = supply__folder_prepare(&file->folder, supply__file_kind_name(kind), name, group, failure);
    if (status == SUPPLY_OK) return repeat(claim_once, file, failure);
    supply__claim_close(file);
    return status;
}

supply_status_t supply__claim_stale(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                                    struct failure *failure) {
    *file = (struct claimed_file){.kind = kind, .name = name, .group = NO_GROUP, .folder = -1, .fd = -1};
    supply_status_t status = supply__folder_find(&file->folder, supply__file_kind_name(kind), name, failure);
    if (status == SUPPLY_OK && file->folder >= 0) return repeat(take_stale, file, failure);
    supply__claim_close(file);
    return status;
}

int supply__claim_unnamed(size_t bytes) {
    const int fd = supply__space_unnamed(bytes, 0);
    const int error = fd < 0 ? errno : supply__space_allocate(fd, 0, bytes);
    if (error == 0) return fd;
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

int supply__claim_reopen(const struct claimed_file *file, int flags) {
    const int fd = openat(file->folder, supply__folder_name(file->name), flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat entry;
    if (fd < 0 || (fstat(fd, &entry) == 0 && claim_is_same(file, &entry))) return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

bool supply__claim_rename(struct claimed_file *file, const struct named_path *name) {
    if (!holds(file)) {
        errno = ESTALE;
        return false;
    }
    return renameat(file->folder, supply__folder_name(file->name), file->folder, supply__folder_name(name)) == 0;
}

bool supply__claim_remove(struct claimed_file *file) {
    const bool gone = file->fd < 0 || file->folder < 0 || unlink_own(file);
    const int error = errno;
    supply__claim_close(file);
    errno = error;
    return gone;
}

void supply__claim_close(struct claimed_file *file) {
    discard(file);
    if (file->folder >= 0) close(file->folder);
    file->folder = -1;
}

/* Locks all files before one is removed: a living pair stays whole. */
static supply_status_t claim_all(const struct config_line *files, struct claimed_file claimed[3],
                                 struct failure *failure) {
    const struct named_path *names[] = {&files->mapped_file, &files->request_pipe, &files->notification_pipe};
    for (int i = 0; i < 3; i++) claimed[i] = CLAIMED_FILE_NONE;
    supply_status_t status = SUPPLY_OK;
    for (int i = 0; i < 3 && status == SUPPLY_OK; i++)
        status = supply__claim_stale(&claimed[i], (enum file_kind)i, names[i], failure);
    return status;
}

static void close_all(struct claimed_file claimed[3]) {
    for (int i = 0; i < 3; i++) supply__claim_close(&claimed[i]);
}

supply_status_t supply__stale_find(const struct config_line *files, struct stale_files *stale,
                                   struct failure *failure) {
    struct claimed_file claimed[3];
    supply_status_t status = claim_all(files, claimed, failure);
    for (int i = 0; i < 3; i++) stale->left[i] = status == SUPPLY_OK && claimed[i].fd >= 0;
    close_all(claimed);
    return status;
}

supply_status_t supply__stale_remove(const struct config_line *files, struct stale_files *stale,
                                     struct failure *failure) {
    *stale = (struct stale_files){0};
    struct claimed_file claimed[3];
    supply_status_t status = claim_all(files, claimed, failure);
    for (int i = 0; i < 3 && status == SUPPLY_OK; i++) {
        if (claimed[i].fd < 0) continue;
        stale->left[i] = supply__claim_remove(&claimed[i]);
        if (!stale->left[i])
            status =
                supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s %s (%s) cannot be removed: %m: remove it by hand",
                             supply__file_kind_name((enum file_kind)i), claimed[i].name->path, claimed[i].name->origin);
    }
    close_all(claimed);
    return status;
}

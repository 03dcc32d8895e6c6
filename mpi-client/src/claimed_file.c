#include "claimed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "folder.h"
#include "layout.h"

/* Somebody who only asks whether a rank lives drops the lock at once; this is ample. */
#define QUESTION_LIMIT_SECONDS 2.0
#define QUESTION_PAUSE_SECONDS 0.001

#define OPEN_FLAGS (O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY)

enum outcome { CLAIMED, ABSENT, RETRY, FAILED };

const char *supply_file_kind_name(enum file_kind kind) {
    static const char *const names[] = {"mapped file", "request pipe", "notification pipe"};
    return names[kind];
}

__attribute__((format(printf, 4, 5))) static enum outcome fail(const struct claimed_file *file,
                                                               struct failure *failure, supply_status_t status,
                                                               const char *format, ...) {
    int error = errno;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    errno = error;
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    supply_fail(failure, status, "%s %s (%s) %s", supply_file_kind_name(file->kind), file->name->path,
                file->name->origin, text);
    return FAILED;
}

static enum outcome fail_in_use(const struct claimed_file *file, struct failure *failure) {
    uint32_t pid = 0;
    if (file->kind == FILE_MAPPED && pread(file->fd, &pid, sizeof pid, offsetof(struct mapped_file_header, rank_pid)) !=
                                         (ssize_t)sizeof pid)
        pid = 0;
    if (pid != 0)
        return fail(file, failure, SUPPLY_ERROR_IN_USE,
                    "is in use by process %u, another rank: give each run files of its own, or end that process", pid);
    return fail(file, failure, SUPPLY_ERROR_IN_USE,
                "is in use by another rank that is alive: give each pair files of its own");
}

/* Only what a rank left behind may be replaced, whatever a config line points at. */
static enum outcome check_ours(const struct claimed_file *file, const struct stat *entry, struct failure *failure) {
    if (S_ISLNK(entry->st_mode))
        return fail(file, failure, SUPPLY_ERROR_CONFIG, "is a symbolic link, which is never followed: remove it");
    if (file->kind == FILE_MAPPED ? !S_ISREG(entry->st_mode) : !S_ISFIFO(entry->st_mode))
        return fail(file, failure, SUPPLY_ERROR_CONFIG, "exists and is not a %s: remove it or choose another path",
                    file->kind == FILE_MAPPED ? "regular file" : "named pipe");
    if (entry->st_uid != geteuid())
        return fail(file, failure, SUPPLY_ERROR_CONFIG,
                    "belongs to another user (uid %u): remove it or choose another path", (unsigned)entry->st_uid);
    return CLAIMED;
}

static enum outcome check_replaceable(const struct claimed_file *file, struct failure *failure) {
    char magic[sizeof MAGIC - 1];
    if (file->kind != FILE_MAPPED) return CLAIMED;
    ssize_t got = pread(file->fd, magic, sizeof magic, 0);
    if (got < 0) return fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be read: %m");
    if (got == 0 || (got == sizeof magic && memcmp(magic, MAGIC, sizeof magic) == 0)) return CLAIMED;
    return fail(file, failure, SUPPLY_ERROR_CONFIG,
                "exists and was not made by a rank: remove it or choose another path");
}

/* Byte 0, which is RANK_LOCK_BYTE in the mapped file. An open-file-description lock: the process may open and close
 * the file elsewhere without losing it, and it ends with the process. */
static enum outcome lock(const struct claimed_file *file, struct failure *failure) {
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RANK_LOCK_BYTE, .l_len = 1};
    if (fcntl(file->fd, F_OFD_SETLK, &wanted) == 0) return CLAIMED;
    if (errno != EAGAIN && errno != EACCES)
        return fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be locked: %m: choose a file system with locks");
    /* A shared lock on the mapped file only asks whether a rank lives. A shared lock on a pipe is its rank's. */
    if (file->kind == FILE_MAPPED &&
        (fcntl(file->fd, F_OFD_GETLK, &wanted) != 0 || wanted.l_type != F_WRLCK))
        return RETRY;
    return fail_in_use(file, failure);
}

static bool same_file(const struct claimed_file *file, const struct stat *entry) {
    return entry->st_dev == file->device && entry->st_ino == file->inode;
}

bool supply_claim_holds(const struct claimed_file *file) {
    struct stat entry;
    return lstat(file->name->path, &entry) == 0 && same_file(file, &entry);
}

/* Opens and locks what stands at the path, and makes sure that it still stands there. */
static enum outcome take(struct claimed_file *file, struct failure *failure) {
    struct stat entry;
    const char *path = file->name->path;
    if (lstat(path, &entry) != 0)
        return errno == ENOENT || errno == ENOTDIR ? ABSENT
                                                   : fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be examined: %m");
    enum outcome outcome = check_ours(file, &entry, failure);
    if (outcome != CLAIMED) return outcome;
    file->fd = open(path, OPEN_FLAGS);
    if (file->fd < 0)
        return errno == ENOENT || errno == ELOOP ? RETRY
                                                 : fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be opened: %m");
    if (fstat(file->fd, &entry) != 0) return fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be examined: %m");
    file->device = entry.st_dev;
    file->inode = entry.st_ino;
    outcome = check_ours(file, &entry, failure);
    if (outcome == CLAIMED) outcome = lock(file, failure);
    if (outcome == CLAIMED && !supply_claim_holds(file)) outcome = RETRY;
    return outcome;
}

/* Makes the name. CLAIMED: it is new; ABSENT: it was there already. */
static enum outcome make(const struct claimed_file *file, struct failure *failure) {
    const char *path = file->name->path;
    int made;
    if (file->kind == FILE_MAPPED) {
        made = open(path, OPEN_FLAGS | O_CREAT | O_EXCL, 0600);
        if (made >= 0) close(made);
    } else {
        made = mkfifo(path, 0600);
    }
    if (made >= 0) return CLAIMED;
    if (errno == EEXIST) return ABSENT;
    if (errno == ENOSPC || errno == EDQUOT)
        return fail(file, failure, SUPPLY_ERROR_NO_SPACE, "can not be created: %m: choose another folder");
    return fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be created: %m");
}

static enum outcome claim_once(struct claimed_file *file, struct failure *failure) {
    enum outcome made = make(file, failure);
    if (made == FAILED) return FAILED;
    enum outcome outcome = take(file, failure);
    if (outcome == ABSENT) return RETRY;
    if (outcome != CLAIMED) return outcome;
    if (made == CLAIMED) {
        if (fchmod(file->fd, 0600) != 0) return fail(file, failure, SUPPLY_ERROR_SYSTEM, "can not be chmodded: %m");
        return CLAIMED;
    }
    outcome = check_replaceable(file, failure);
    if (outcome != CLAIMED) return outcome;
    supply_claim_remove(file);
    return RETRY;
}

static supply_status_t repeat(enum outcome once(struct claimed_file *, struct failure *), struct claimed_file *file,
                              struct failure *failure) {
    const int64_t deadline = supply_clock_after(QUESTION_LIMIT_SECONDS);
    for (;;) {
        enum outcome outcome = once(file, failure);
        if (outcome == CLAIMED) return SUPPLY_OK;
        if (outcome == RETRY && supply_clock_now() >= deadline) outcome = fail_in_use(file, failure);
        supply_claim_close(file);
        if (outcome == ABSENT) return SUPPLY_OK;
        if (outcome == FAILED) return failure->status;
        supply_clock_sleep(QUESTION_PAUSE_SECONDS);
    }
}

supply_status_t supply_claim(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                             struct failure *failure) {
    *file = (struct claimed_file){.kind = kind, .name = name, .fd = -1};
    supply_status_t status = supply_folder_prepare(supply_file_kind_name(kind), name, failure);
    return status == SUPPLY_OK ? repeat(claim_once, file, failure) : status;
}

static enum outcome take_stale(struct claimed_file *file, struct failure *failure) {
    enum outcome outcome = take(file, failure);
    return outcome == CLAIMED ? check_replaceable(file, failure) : outcome;
}

supply_status_t supply_claim_stale(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                                   struct failure *failure) {
    *file = (struct claimed_file){.kind = kind, .name = name, .fd = -1};
    return repeat(take_stale, file, failure);
}

void supply_claim_remove(struct claimed_file *file) {
    if (file->fd >= 0 && supply_claim_holds(file)) unlink(file->name->path);
    supply_claim_close(file);
}

void supply_claim_close(struct claimed_file *file) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

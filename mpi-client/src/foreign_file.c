#include "foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "clock.h"

#define CLOSING_PAUSE_SECONDS 0.01

const struct foreign_use supply_foreign_values = {
    .field = "window.file",
    .role = "which Spark supplies in place (--in-place),",
    .place = "It must be on this node, and readable for the rank's user",
    .group = "give it to that group (chgrp, chmod g+r)",
    .remedy = "supply it without --in-place",
    .closing = 0,
};

/* A process that the JVM is just starting has copies of its descriptors, for an instant after they were closed. */
const struct foreign_use supply_foreign_blocks = {
    .field = "notification.file",
    .role = "a file of Spark's --resident-folder,",
    .place = "The folder must be on this node, and the rank's user must be able to enter it and to read the file",
    .group = "set the same group= for the task",
    .remedy = "run without --resident-folder",
    .closing = 1,
};

static supply_status_t fail_by_errno(struct failure *failure, const struct foreign_file_mapping *file,
                                     const char *what) {
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "%s, %s cannot be %s by this rank: %m. %s; or %s",
                       file->entry.path, file->use->role, what, file->use->place, file->use->remedy);
}

static supply_status_t fail_by_writer(struct failure *failure, const struct foreign_file_mapping *file) {
    errno = EBUSY;
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM,
                       "%s, %s is open for writing in another process: values that were read from it may be wrong. "
                       "Close it there, or %s",
                       file->entry.path, file->use->role, file->use->remedy);
}

static supply_status_t fail_by_change(struct failure *failure, const struct foreign_file_mapping *file) {
    errno = ESTALE;
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM,
                       "%s, %s has changed since Spark opened it: values that were read from it may be wrong. Nobody "
                       "may write to it during a run",
                       file->entry.path, file->use->role);
}

/* 0, or -1 and errno: EAGAIN: the file stays open for writing. */
static int lease_after_closing(const struct foreign_file_mapping *file) {
    const int64_t deadline = supply_clock_after(file->use->closing);
    while (fcntl(file->fd, F_SETLEASE, F_RDLCK) != 0) {
        if (errno != EAGAIN || supply_clock_now() >= deadline) return -1;
        supply_clock_sleep(CLOSING_PAUSE_SECONDS);
    }
    return 0;
}

/*
 * A read lease: whoever opens the file for writing, or cuts it, waits until the lease is dropped, at most
 * /proc/sys/fs/lease-break-time. Only the file's owner may have one, and not on every file system.
 */
static supply_status_t take_lease(struct foreign_file_mapping *file, struct failure *failure) {
    /* The kernel would signal the owner of the descriptor. By default that is this process, and SIGIO would end it. */
    if (fcntl(file->fd, F_SETSIG, SIGURG) != 0) return SUPPLY_OK;
    file->has_lease = lease_after_closing(file) == 0;
    if (!file->has_lease) return errno == EAGAIN ? fail_by_writer(failure, file) : SUPPLY_OK;
    fcntl(file->fd, F_SETOWN, 0);
    return SUPPLY_OK;
}

static bool is_same(const struct foreign_file *entry, const struct stat *found) {
    return S_ISREG(found->st_mode) && found->st_dev == entry->device && found->st_ino == entry->inode &&
           (uint64_t)found->st_size == entry->file_bytes &&
           (uint64_t)found->st_mtim.tv_sec * NANOSECONDS + (uint64_t)found->st_mtim.tv_nsec == entry->modified;
}

supply_status_t supply_foreign_file_check(const struct foreign_file_mapping *file, struct failure *failure) {
    struct stat found;
    if (fstat(file->fd, &found) != 0) return fail_by_errno(failure, file, "examined");
    if (!is_same(&file->entry, &found)) return fail_by_change(failure, file);
    if (file->has_lease && fcntl(file->fd, F_GETLEASE) != F_RDLCK) return fail_by_writer(failure, file);
    return SUPPLY_OK;
}

static bool is_open_to(const struct stat *found, gid_t group) {
    return (found->st_mode & (found->st_gid == group ? S_IRGRP : S_IROTH)) != 0;
}

/* A task of another user of the group must not see, by this rank, what only the rank's user may read. */
static supply_status_t check_group(const struct foreign_file_mapping *file, gid_t group, struct failure *failure) {
    struct stat found;
    char text[USER_TEXT_BYTES];
    if (group == NO_GROUP) return SUPPLY_OK;
    if (fstat(file->fd, &found) != 0) return fail_by_errno(failure, file, "examined");
    /* With a list, the mode's bits of the group are a mask of all that the list says. */
    const bool has_access_list = fgetxattr(file->fd, "system.posix_acl_access", NULL, 0) > 0;
    if (!has_access_list && is_open_to(&found, group)) return SUPPLY_OK;
    errno = EACCES;
    if (has_access_list)
        return supply_fail(
            failure, SUPPLY_ERROR_SYSTEM,
            "%s, %s has an access control list, so its mode does not say whether the pair's group %s may "
            "read it: remove the list (setfacl -b), or %s",
            file->entry.path, file->use->role, supply_group_text(group, text), file->use->remedy);
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "%s, %s cannot be read by the pair's group %s: %s, or %s",
                       file->entry.path, file->use->role, supply_group_text(group, text), file->use->group,
                       file->use->remedy);
}

/* Opening a pipe or a device may do something: the task must not be able to make the rank do that. */
static supply_status_t open_regular(const struct foreign_file_mapping *file, int *fd, struct failure *failure) {
    struct stat found;
    if (stat(file->entry.path, &found) != 0) return fail_by_errno(failure, file, "opened");
    if (!is_same(&file->entry, &found)) return fail_by_change(failure, file);
    /* Without blocking, because the path could lead to a pipe by now. */
    *fd = open(file->entry.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return *fd >= 0 ? SUPPLY_OK : fail_by_errno(failure, file, "opened");
}

static supply_status_t map_descriptor(struct foreign_file_mapping *file, int fd, struct failure *failure) {
    struct stat found;
    if (fstat(fd, &found) != 0) return fail_by_errno(failure, file, "examined");
    if (!is_same(&file->entry, &found)) return fail_by_change(failure, file);
    void *address = mmap(NULL, file->entry.file_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return fail_by_errno(failure, file, "mapped");
    file->address = address;
    return SUPPLY_OK;
}

/*
 * By a descriptor of its own: the mapping lives on in a forked child, and for an Arrow array that outlives the handle.
 * It must not keep the lease there.
 */
static supply_status_t map(struct foreign_file_mapping *file, struct failure *failure) {
    int fd = -1;
    supply_status_t status = open_regular(file, &fd, failure);
    if (status != SUPPLY_OK) return status;
    status = map_descriptor(file, fd, failure);
    close(fd);
    return status;
}

supply_status_t supply_foreign_file_open(struct foreign_file_mapping *file, const struct foreign_file *entry,
                                         const struct foreign_use *use, gid_t group, struct failure *failure) {
    *file = (struct foreign_file_mapping){.use = use, .entry = *entry, .fd = -1};
    if (memchr(file->entry.path, '\0', sizeof file->entry.path) == NULL || file->entry.path[0] != '/' ||
        file->entry.file_bytes == 0)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "a foreign_file entry has no absolute path, or no bytes");
    supply_status_t status = open_regular(file, &file->fd, failure);
    if (status == SUPPLY_OK) status = check_group(file, group, failure);
    if (status == SUPPLY_OK) status = take_lease(file, failure);
    if (status == SUPPLY_OK) status = supply_foreign_file_check(file, failure);
    if (status == SUPPLY_OK) status = map(file, failure);
    if (status != SUPPLY_OK) supply_foreign_file_close(file);
    return status;
}

void supply_foreign_file_drop_lease(struct foreign_file_mapping *file) {
    if (file->has_lease) fcntl(file->fd, F_SETLEASE, F_UNLCK);
    file->has_lease = false;
}

void supply_foreign_file_close(struct foreign_file_mapping *file) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

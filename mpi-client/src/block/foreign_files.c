/**
 * R3 for values in place: opens the file that an entry of the header describes, takes a lease on it, and checks each
 * window and view of a column. Entries, windows and views are copied before they are checked; the file itself must not
 * change, which is checked as well. Files are opened and checked in the thread that receives, without the lock.
 */
#include "block/foreign_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"

#define CLOSING_PAUSE_SECONDS 0.01

const struct foreign_use supply__foreign_values = {
    .field = "window.file",
    .role = "which Spark supplies in place (--in-place),",
    .place = "It must be on this node, and readable for the rank's user",
    .group = "give it to that group (chgrp, chmod g+r)",
    .remedy = "supply it without --in-place",
    .closing = 0,
};

/* A process that the JVM is just starting has copies of its descriptors, for an instant after they were closed. */
const struct foreign_use supply__foreign_blocks = {
    .field = "notification.file",
    .role = "a file of Spark's --resident-folder,",
    .place = "The folder must be on this node, and the rank's user must be able to enter it and to read the file",
    .group = "set the same group= for the task",
    .remedy = "run without --resident-folder",
    .closing = 1,
};

static supply_status_t fail_by_errno(struct failure *failure, const struct foreign_file_mapping *file,
                                     const char *what) {
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s, %s cannot be %s by this rank: %m. %s; or %s",
                        file->entry.path, file->use->role, what, file->use->place, file->use->remedy);
}

static supply_status_t fail_by_writer(struct failure *failure, const struct foreign_file_mapping *file) {
    errno = EBUSY;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM,
                        "%s, %s is open for writing in another process: values that were read from it may be wrong. "
                        "Close it there, or %s",
                        file->entry.path, file->use->role, file->use->remedy);
}

static supply_status_t foreign_fail_by_change(struct failure *failure, const struct foreign_file_mapping *file) {
    errno = ESTALE;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM,
                        "%s, %s has changed since Spark opened it: values that were read from it may be wrong. Nobody "
                        "may write to it during a run",
                        file->entry.path, file->use->role);
}

/* 0, or -1 and errno: EAGAIN: the file stays open for writing. */
static int lease_after_closing(const struct foreign_file_mapping *file) {
    const struct wait_limit limit = {.seconds = file->use->closing};
    struct wait wait = supply__wait_begin_slow(limit, CLOSING_PAUSE_SECONDS);
    while (fcntl(file->fd, F_SETLEASE, F_RDLCK) != 0)
        if (errno != EAGAIN || supply__wait_more(&wait) != SUPPLY_OK) return -1;
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

static bool foreign_is_same(const struct foreign_file *entry, const struct stat *found) {
    return S_ISREG(found->st_mode) && found->st_dev == entry->device && found->st_ino == entry->inode &&
           (uint64_t)found->st_size == entry->file_bytes &&
           (uint64_t)found->st_mtim.tv_sec * NANOSECONDS + (uint64_t)found->st_mtim.tv_nsec == entry->modified;
}

/* SUPPLY_OK: nobody has written to the file since then. Else _SYSTEM: ESTALE, EBUSY. */
static supply_status_t foreign_file_check(const struct foreign_file_mapping *file, struct failure *failure) {
    struct stat found;
    if (fstat(file->fd, &found) != 0) return fail_by_errno(failure, file, "examined");
    if (!foreign_is_same(&file->entry, &found)) return foreign_fail_by_change(failure, file);
    if (file->has_lease && fcntl(file->fd, F_GETLEASE) != F_RDLCK) return fail_by_writer(failure, file);
    return SUPPLY_OK;
}

/* A task of another user of the group must not see, by this rank, what only the rank's user may read. */
static supply_status_t foreign_check_group(const struct foreign_file_mapping *file, gid_t group,
                                           struct failure *failure) {
    struct stat found;
    char text[USER_TEXT_BYTES];
    if (group == NO_GROUP) return SUPPLY_OK;
    if (fstat(file->fd, &found) != 0) return fail_by_errno(failure, file, "examined");
    /* With a list, the mode's bits of the group are a mask of all that the list says. */
    const bool has_access_list = fgetxattr(file->fd, "system.posix_acl_access", NULL, 0) > 0;
    if (!has_access_list && supply__is_open_to(&found, group, S_IROTH)) return SUPPLY_OK;
    errno = EACCES;
    if (has_access_list)
        return supply__fail(
            failure, SUPPLY_ERROR_SYSTEM,
            "%s, %s has an access control list, so its mode does not say whether the pair's group %s may "
            "read it: remove the list (setfacl -b), or %s",
            file->entry.path, file->use->role, supply__group_text(group, text), file->use->remedy);
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s, %s cannot be read by the pair's group %s: %s, or %s",
                        file->entry.path, file->use->role, supply__group_text(group, text), file->use->group,
                        file->use->remedy);
}

/* Opening a pipe or a device may do something: the task must not be able to make the rank do that. */
static supply_status_t open_regular(const struct foreign_file_mapping *file, int *fd, struct failure *failure) {
    struct stat found;
    if (stat(file->entry.path, &found) != 0) return fail_by_errno(failure, file, "opened");
    if (!foreign_is_same(&file->entry, &found)) return foreign_fail_by_change(failure, file);
    /* Without blocking, because the path could lead to a pipe by now. */
    *fd = open(file->entry.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return *fd >= 0 ? SUPPLY_OK : fail_by_errno(failure, file, "opened");
}

static supply_status_t map_descriptor(struct foreign_file_mapping *file, int fd, struct failure *failure) {
    struct stat found;
    if (fstat(fd, &found) != 0) return fail_by_errno(failure, file, "examined");
    if (!foreign_is_same(&file->entry, &found)) return foreign_fail_by_change(failure, file);
    void *address = mmap(NULL, file->entry.file_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return fail_by_errno(failure, file, "mapped");
    file->address = address;
    return SUPPLY_OK;
}

/*
 * By a descriptor of its own: the mapping lives on in a forked child, and for an Arrow array that outlives the handle.
 * It must not keep the lease there.
 */
static supply_status_t foreign_map(struct foreign_file_mapping *file, struct failure *failure) {
    int fd = -1;
    TRY(open_regular(file, &fd, failure));
    supply_status_t status = map_descriptor(file, fd, failure);
    close(fd);
    return status;
}

/*
 * Closes this process's descriptor. The kernel drops the lease when no process has a copy of it. The mapping stays.
 */
static void foreign_file_close(struct foreign_file_mapping *file) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

/*
 * Opens the file of that entry for that use. `group` may use the pair, too, or NO_GROUP. SUPPLY_OK, or _CONTRACT (the
 * entry is wrong), _SYSTEM: the file cannot be read here (errno), or is not the one of the entry (ESTALE), is open for
 * writing (EBUSY), or is none that the group may read (EACCES). On failure nothing is left.
 */
static supply_status_t foreign_file_open(struct foreign_file_mapping *file, const struct foreign_file *entry,
                                         const struct foreign_use *use, gid_t group, struct failure *failure) {
    *file = (struct foreign_file_mapping){.use = use, .entry = *entry, .fd = -1};
    if (memchr(file->entry.path, '\0', sizeof file->entry.path) == NULL || file->entry.path[0] != '/' ||
        file->entry.file_bytes == 0)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "a foreign_file entry has no absolute path, or no bytes");
    supply_status_t status = open_regular(file, &file->fd, failure);
    if (status == SUPPLY_OK) status = foreign_check_group(file, group, failure);
    if (status == SUPPLY_OK) status = take_lease(file, failure);
    if (status == SUPPLY_OK) status = foreign_file_check(file, failure);
    if (status == SUPPLY_OK) status = foreign_map(file, failure);
    if (status != SUPPLY_OK) foreign_file_close(file);
    return status;
}

/* Lets writers continue, even if a forked child still has the descriptor. */
static void foreign_file_drop_lease(struct foreign_file_mapping *file) {
    if (file->has_lease) fcntl(file->fd, F_SETLEASE, F_UNLCK);
    file->has_lease = false;
}

supply_status_t supply__foreign_files_find(struct foreign_files *files, const struct mapped_file_header *header,
                                           uint32_t number, const struct foreign_use *use,
                                           const struct foreign_file_mapping **found, struct failure *failure) {
    /* The task stores the count last, with release: entries below it are whole. */
    const uint32_t count = __atomic_load_n(&header->foreign_count, __ATOMIC_ACQUIRE);
    if (count > FOREIGN_FILES_MAX)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "foreign_count is %u, must be at most %d", count,
                            FOREIGN_FILES_MAX);
    if (number == 0 || number > count)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "%s is %u, must be from 1 to foreign_count, %u", use->field,
                            number, count);
    const uint32_t index = number - 1;
    *found = &files->files[index];
    if (files->opened >> index & 1) return SUPPLY_OK;
    struct foreign_file entry;
    memcpy(&entry, (const uint8_t *)header + FOREIGN_FILES_OFFSET + index * sizeof entry, sizeof entry);
    supply_status_t status = foreign_file_open(&files->files[index], &entry, use, files->group, failure);
    if (status == SUPPLY_OK) files->opened |= 1u << index;
    return status;
}

supply_status_t supply__foreign_files_check(const struct foreign_files *files, struct failure *failure) {
    for (uint32_t i = 0; i < FOREIGN_FILES_MAX; i++)
        if (files->opened >> i & 1) TRY(foreign_file_check(&files->files[i], failure));
    return SUPPLY_OK;
}

void supply__foreign_files_abandon(struct foreign_files *files) {
    for (uint32_t i = 0; i < FOREIGN_FILES_MAX; i++)
        if (files->opened >> i & 1) foreign_file_close(&files->files[i]);
    files->opened = 0;
}

void supply__foreign_files_close(struct foreign_files *files, struct exported_mappings *mappings) {
    for (uint32_t i = 0; i < FOREIGN_FILES_MAX; i++) {
        if ((files->opened >> i & 1) == 0) continue;
        struct foreign_file_mapping *file = &files->files[i];
        foreign_file_drop_lease(file);
        foreign_file_close(file);
        mappings->list[mappings->count].address = (void *)file->address;
        mappings->list[mappings->count++].bytes = file->entry.file_bytes;
    }
    files->opened = 0;
}

static_assert(sizeof(supply_view_t) == sizeof(struct view), "supply_view_t is the contract's view");

static supply_status_t foreign_grow(struct block_windows *windows, uint32_t count, struct failure *failure) {
    if (count <= windows->capacity) return SUPPLY_OK;
    supply_window_t *list = realloc(windows->list, count * sizeof *list);
    if (list == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    windows->list = list;
    windows->capacity = count;
    return SUPPLY_OK;
}

static supply_status_t add_window(struct block_windows *windows, const struct window *shared,
                                  struct foreign_files *files, const struct mapped_file_header *header,
                                  struct failure *failure) {
    struct window window;
    memcpy(&window, shared, sizeof window);
    const struct foreign_file_mapping *file;
    TRY(supply__foreign_files_find(files, header, window.file, &supply__foreign_values, &file, failure));
    const uint64_t file_bytes = file->entry.file_bytes;
    if (window.window_bytes > WINDOW_BYTES_MAX)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "window.window_bytes is %" PRIu64 ", must be at most %d",
                            window.window_bytes, WINDOW_BYTES_MAX);
    if (window.offset > file_bytes || window.window_bytes > file_bytes - window.offset)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                            "window.offset is %" PRIu64 ", must be with its %" PRIu64 " bytes within the %" PRIu64
                            " bytes of %s",
                            window.offset, window.window_bytes, file_bytes, file->entry.path);
    windows->list[windows->count++] =
        (supply_window_t){.address = file->address + window.offset, .bytes = window.window_bytes};
    return SUPPLY_OK;
}

bool supply__view_find(const supply_view_t *view, const supply_window_t *windows, uint32_t count, const void **data) {
    if (view->bytes < 0 || (uint32_t)view->window >= count || view->offset < 0) return false;
    const supply_window_t *window = &windows[view->window];
    if ((uint64_t)view->offset + (uint64_t)view->bytes > window->bytes) return false;
    *data = (const uint8_t *)window->address + view->offset;
    return true;
}

supply_status_t supply__block_views_check(struct block_windows *windows, const struct block_views *views,
                                          struct foreign_files *files, const struct mapped_file_header *header,
                                          struct failure *failure) {
    windows->count = 0;
    TRY(foreign_grow(windows, views->window_count, failure));
    for (uint32_t i = 0; i < views->window_count; i++)
        TRY(add_window(windows, &views->windows[i], files, header, failure));
    const void *data;
    for (uint32_t i = 0; i < views->element_count; i++) {
        supply_view_t view;
        memcpy(&view, &views->views[i], sizeof view);
        if (!supply__view_is_inline(&view) && !supply__view_find(&view, windows->list, windows->count, &data))
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                "the view of element %u has %d bytes at %d of window %d, must be within one of the %u "
                                "windows",
                                i, view.bytes, view.offset, view.window, windows->count);
    }
    return SUPPLY_OK;
}

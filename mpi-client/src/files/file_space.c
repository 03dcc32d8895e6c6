/**
 * O2, W2 and W3: checks and reserves space, and writes, so that a full file system, or a limit of this process, is an
 * error and not a signal. It runs in the thread that opens, or writes a result.
 */
#include "files/file_space.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "files/memory_limit.h"
#include "layout.h"

/* Of the first attempt to reserve space. */
#define STEP_BYTES ((uint64_t)64 << 20)

uint64_t supply__space_free(const struct statvfs *space) {
    return space->f_blocks == 0 ? SPACE_WITHOUT_LIMIT : (uint64_t)space->f_bavail * space->f_frsize;
}

static uint64_t free_bytes(const struct claimed_file *file) {
    struct statvfs space;
    return fstatvfs(file->fd, &space) == 0 ? supply__space_free(&space) : 0;
}

static const char *how_to_need_less(const struct claimed_file *file) {
    return file->kind == FILE_RESULT ? "write fewer rows" : "set ring= or block= smaller";
}

static const char *folder_setting(const struct claimed_file *file) {
    return file->kind == FILE_RESULT ? " (SUPPLY_RESULTS_FOLDER)" : "";
}

static supply_status_t space_fail(const struct claimed_file *file, uint64_t bytes, int error, struct failure *failure) {
    const char *kind = supply__file_kind_name(file->kind);
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
        char available[64] = "the node has no more memory";
        if (free_bytes(file) != SPACE_WITHOUT_LIMIT)
            snprintf(available, sizeof available, "%llu are free", (unsigned long long)free_bytes(file));
        return supply__fail(
            failure, SUPPLY_ERROR_NO_SPACE,
            "%s %s (%s): no space: %llu bytes are needed and %s: %s, or choose a folder on another file "
            "system%s",
            kind, file->name->path, file->name->origin, (unsigned long long)bytes, available, how_to_need_less(file),
            folder_setting(file));
    }
    errno = error;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s %s (%s): %llu bytes cannot be reserved or written: %m", kind,
                        file->name->path, file->name->origin, (unsigned long long)bytes);
}

/* A file above the limit of the process would end it by SIGXFSZ. */
static supply_status_t space_check_limit(const struct claimed_file *file, unsigned long long end,
                                         struct failure *failure) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_NO_SPACE,
                        "%s %s (%s): %llu bytes are needed and this process may write files of %llu: raise ulimit -f, "
                        "or %s",
                        supply__file_kind_name(file->kind), file->name->path, file->name->origin, end,
                        (unsigned long long)limit.rlim_cur, how_to_need_less(file));
}

supply_status_t supply__memory_check(uint64_t bytes, const char *root, struct failure *failure) {
    struct memory_limit limit;
    supply__memory_limit_read(&limit, root);
    if (bytes <= supply__memory_limit_left(&limit)) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_NO_SPACE,
                        "%llu bytes of memory are needed, and the control group %s has %llu left of its limit of %llu: "
                        "raise the memory limit of the container or job",
                        (unsigned long long)bytes, limit.place, (unsigned long long)supply__memory_limit_left(&limit),
                        (unsigned long long)limit.limit_bytes);
}

static bool is_in_memory(const struct claimed_file *file) {
    struct statfs found;
    return fstatfs(file->fd, &found) == 0 && (found.f_type == TMPFS_MAGIC || found.f_type == HUGETLBFS_MAGIC);
}

int supply__space_allocate(int fd, uint64_t offset, uint64_t bytes) {
    /* A kernel may undo a whole call when a signal interrupts it: so in steps, smaller ones after each signal. */
    uint64_t step = STEP_BYTES;
    for (uint64_t reserved = 0; reserved < bytes;) {
        if (step > bytes - reserved) step = bytes - reserved;
        const int error = posix_fallocate(fd, (off_t)(offset + reserved), (off_t)step);
        if (error == 0) {
            reserved += step;
            step = step < STEP_BYTES ? 2 * step : step;
        } else if (error == EINTR)
            step = step > BLOCK_BYTES_UNIT ? step / 2 : step;
        else
            return error;
    }
    return 0;
}

int supply__space_unnamed(size_t bytes, unsigned flags) {
    struct rlimit limit;
    errno = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes > limit.rlim_cur) return -1;
    /* memfd_create() is not in glibc 2.26, for which the wheel is compiled. */
    const int fd = (int)syscall(SYS_memfd_create, "supply-ring", MFD_CLOEXEC | flags);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

supply_status_t supply__space_begin(const struct claimed_file *file, const char magic[8], uint64_t bytes,
                                    struct failure *failure) {
    TRY(space_check_limit(file, bytes, failure));
    /* Steps would fill the file system, on tmpfs with the node's memory, before the last one fails. */
    if (bytes > free_bytes(file)) return space_fail(file, bytes, ENOSPC, failure);
    if (is_in_memory(file) && supply__memory_check(bytes, "", failure) != SUPPLY_OK)
        return supply__fail(failure, SUPPLY_ERROR_NO_SPACE, "%s %s (%s): %s, or %s", supply__file_kind_name(file->kind),
                            file->name->path, file->name->origin, failure->text, how_to_need_less(file));
    TRY(supply__space_write(file, 0, magic, 8, failure));
    const int error = supply__space_allocate(file->fd, 0, bytes);
    return error == 0 ? SUPPLY_OK : space_fail(file, bytes, error, failure);
}

supply_status_t supply__space_write_pieces(const struct claimed_file *file, uint64_t offset, size_t bytes,
                                           struct iovec *pieces, int count, struct failure *failure) {
    TRY(space_check_limit(file, offset + bytes, failure));
    while (count > 0) {
        ssize_t got = pwritev(file->fd, pieces, count < IOV_MAX ? count : IOV_MAX, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return space_fail(file, bytes, errno, failure);
        offset += (size_t)got;
        for (; count > 0 && (size_t)got >= pieces->iov_len; pieces++, count--) got -= (ssize_t)pieces->iov_len;
        if (count == 0 || got == 0) continue;
        pieces->iov_base = (uint8_t *)pieces->iov_base + got;
        pieces->iov_len -= (size_t)got;
    }
    return SUPPLY_OK;
}

supply_status_t supply__space_write(const struct claimed_file *file, uint64_t offset, const void *bytes, size_t count,
                                    struct failure *failure) {
    struct iovec piece = {(void *)bytes, count};
    return supply__space_write_pieces(file, offset, count, &piece, 1, failure);
}

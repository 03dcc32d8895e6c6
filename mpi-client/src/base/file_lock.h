/**
 * Open-file-description locks on single bytes. The process may open and close the file elsewhere without losing a lock.
 * A lock ends when its descriptor and all copies of it are closed.
 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/** Opens once more what a descriptor has open: with locks and flags of its own. A descriptor, or -1 and errno. */
static inline int supply__reopen(int fd, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

/** Takes (F_RDLCK, F_WRLCK) or drops (F_UNLCK) the lock on a byte. 0; or -1 and errno: EAGAIN, EACCES: it is taken. */
static inline int supply__file_lock(int fd, short type, off_t byte) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1, .l_pid = 0};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

/**
 * Whether another process's lock on the byte prevents a lock of this type. Takes no lock. Also true if the kernel
 * cannot say it, so that no file in use is removed by mistake.
 */
static inline bool supply__file_is_locked(int fd, short type, off_t byte) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1, .l_pid = 0};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

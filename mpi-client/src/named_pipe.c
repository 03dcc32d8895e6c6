#include "named_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file_lock.h"
#include "layout.h"

static int lock_shared(int fd) { return supply_file_lock(fd, F_RDLCK, RANK_LOCK_BYTE); }

/*
 * A descriptor that has seen its last writer leave stays at end of file, and would make every poll() return at
 * once. A new one of the same pipe is quiet until the next writer has come and left. What lies in the pipe stays: the
 * old descriptor keeps it until the new one has taken its number, and with it the number that the program polls.
 */
static supply_status_t renew(struct claimed_file *pipe, struct failure *failure) {
    const char *path = pipe->name->path;
    int fd = supply_claim_reopen(pipe, O_RDONLY);
    struct stat entry;
    if (fd < 0 || fstat(fd, &entry) != 0) goto failed;
    if (entry.st_dev != pipe->device || entry.st_ino != pipe->inode) {
        close(fd);
        return supply_fail(failure, SUPPLY_ERROR_SYSTEM,
                           "notification pipe %s (%s) has been removed or replaced while it was in use", path,
                           pipe->name->origin);
    }
    if (lock_shared(fd) != 0 || dup3(fd, pipe->fd, O_CLOEXEC) < 0) goto failed;
    close(fd);
    return SUPPLY_OK;

failed:
    supply_fail(failure, SUPPLY_ERROR_SYSTEM, "notification pipe %s (%s) can not be opened again: %m", path,
                pipe->name->origin);
    if (fd >= 0) close(fd);
    return SUPPLY_ERROR_SYSTEM;
}

supply_status_t supply_pipe_become_reader(struct claimed_file *pipe, struct failure *failure) {
    /* An exclusive lock needs a descriptor that can write. The claim has excluded everybody else; a shared
     * lock keeps it so, because whoever would remove a pipe asks whether it could have an exclusive one. */
    if (lock_shared(pipe->fd) != 0)
        return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "notification pipe %s (%s) can not be locked: %m",
                           pipe->name->path, pipe->name->origin);
    supply_status_t status = renew(pipe, failure);
    /* That one was opened while the claim's descriptor could still write, and takes it for a task that has left. */
    return status == SUPPLY_OK ? renew(pipe, failure) : status;
}

static bool writer_left(const struct claimed_file *pipe) {
    struct pollfd poller = {.fd = pipe->fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1 && (poller.revents & POLLHUP) != 0 && (poller.revents & POLLIN) == 0;
}

enum pipe_read supply_pipe_read(struct claimed_file *pipe, void *record, size_t bytes, struct failure *failure) {
    ssize_t got;
    do got = read(pipe->fd, record, bytes);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)bytes) return PIPE_RECORD;
    if (got < 0 && errno == EAGAIN) return PIPE_EMPTY;
    if (got < 0) {
        supply_fail(failure, SUPPLY_ERROR_SYSTEM, "notification pipe %s can not be read: %m", pipe->name->path);
        return PIPE_FAILED;
    }
    if (got > 0) {
        supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                    "notification pipe %s: a part of a notification (%zd bytes of %zu): is something else writing into "
                    "this pipe?",
                    pipe->name->path, got, bytes);
        return PIPE_FAILED;
    }
    /* Nothing and no writer: no task has come yet, or one has left. */
    if (!writer_left(pipe)) return PIPE_EMPTY;
    return renew(pipe, failure) == SUPPLY_OK ? PIPE_WRITER_LEFT : PIPE_FAILED;
}

int supply_pipe_wait(const struct claimed_file *pipe, int64_t deadline) {
    for (;;) {
        int64_t left = deadline - supply_clock_now();
        if (left <= 0) return 0;
        int64_t milliseconds = (left + 999999) / 1000000;
        struct pollfd poller = {.fd = pipe->fd, .events = POLLIN};
        int ready = poll(&poller, 1, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
        if (ready > 0) return 1;
        if (ready < 0 && errno != EINTR) return -1;
    }
}

bool supply_pipe_write(const struct claimed_file *pipe, const void *record, size_t bytes) {
    ssize_t put;
    do put = write(pipe->fd, record, bytes);
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)bytes;
}

bool supply_pipe_write_over(const struct claimed_file *pipe, const void *record, size_t bytes) {
    char unread[PIPE_BUF];
    while (!supply_pipe_write(pipe, record, bytes)) {
        if (errno != EAGAIN) return false;
        if (read(pipe->fd, unread, sizeof unread) < 0 && errno != EINTR && errno != EAGAIN) return false;
    }
    return true;
}

/**
 * Records through the named pipes. Ends are non-blocking: nothing here waits. What a record says is for the caller to
 * check. It runs in the thread that uses the handle; wake-ups (C2) also in one that releases an Arrow array, under the
 * lock.
 */
#include "pair/named_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "layout.h"

static int lock_shared(int fd) { return supply__file_lock(fd, F_RDLCK, RANK_LOCK_BYTE); }

/*
 * A descriptor stays at end of file after its last writer has left: every poll() would return at once. A new descriptor
 * of the same pipe is quiet until the next writer has come and left. It takes the place of the old one, and the pipe
 * keeps its unread data, because one of the two is always open. The program polls an epoll descriptor, which stays.
 * What is registered there would stay with the old open file, if a forked child has it.
 */
static supply_status_t renew(struct claimed_file *pipe, struct failure *failure) {
    const char *path = pipe->name->path;
    int fd = supply__claim_reopen(pipe, O_RDONLY);
    if (fd < 0 && errno == ESTALE)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM,
                            "notification pipe %s (%s) was removed or replaced while in use", path, pipe->name->origin);
    supply_status_t status = SUPPLY_OK;
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(pipe->poller, EPOLL_CTL_DEL, pipe->fd, &event);
    if (fd < 0 || lock_shared(fd) != 0 || dup3(fd, pipe->fd, O_CLOEXEC) < 0 ||
        epoll_ctl(pipe->poller, EPOLL_CTL_ADD, pipe->fd, &event) != 0)
        status = supply__fail(failure, SUPPLY_ERROR_SYSTEM, "notification pipe %s (%s) cannot be opened again: %m",
                              path, pipe->name->origin);
    if (fd >= 0) close(fd);
    return status;
}

supply_status_t supply__pipe_become_reader(struct claimed_file *pipe, struct failure *failure) {
    /* An exclusive lock needs a descriptor that can write. The claim has excluded every other process, and a shared
     * lock keeps them out: a process that wants to remove a pipe asks for an exclusive one. */
    pipe->poller = epoll_create1(EPOLL_CLOEXEC);
    if (pipe->poller < 0 || lock_shared(pipe->fd) != 0)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "notification pipe %s (%s) cannot be locked or polled: %m",
                            pipe->name->path, pipe->name->origin);
    supply_status_t status = renew(pipe, failure);
    /* Renew twice: while the first descriptor was opened, this process could still write, so it would report a writer
     * that left. */
    return status == SUPPLY_OK ? renew(pipe, failure) : status;
}

static bool writer_left(const struct claimed_file *pipe) {
    struct pollfd poller = {.fd = pipe->fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1 && (poller.revents & POLLHUP) != 0 && (poller.revents & POLLIN) == 0;
}

bool supply__pipe_has_data(const struct claimed_file *pipe) {
    struct pollfd poller = {.fd = pipe->fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1 && (poller.revents & POLLIN) != 0;
}

enum pipe_read supply__pipe_read(struct claimed_file *pipe, void *record, size_t bytes, struct failure *failure) {
    ssize_t got;
    do got = read(pipe->fd, record, bytes);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)bytes) return PIPE_RECORD;
    if (got < 0 && errno == EAGAIN) return PIPE_EMPTY;
    if (got < 0) {
        supply__fail(failure, SUPPLY_ERROR_SYSTEM, "notification pipe %s cannot be read: %m", pipe->name->path);
        return PIPE_FAILED;
    }
    if (got > 0) {
        supply__fail(
            failure, SUPPLY_ERROR_CONTRACT,
            "notification pipe %s: a part of a notification (%zd bytes of %zu): is something else writing into "
            "this pipe?",
            pipe->name->path, got, bytes);
        return PIPE_FAILED;
    }
    /* No data and no writer: no task has come yet, or one has left. */
    if (!writer_left(pipe)) return PIPE_EMPTY;
    return renew(pipe, failure) == SUPPLY_OK ? PIPE_WRITER_LEFT : PIPE_FAILED;
}

bool supply__pipe_write(const struct claimed_file *pipe, const void *record, size_t bytes) {
    ssize_t put;
    do put = write(pipe->fd, record, bytes);
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)bytes;
}

bool supply__pipe_write_over(const struct claimed_file *pipe, const void *record, size_t bytes) {
    char unread[PIPE_BUF];
    while (!supply__pipe_write(pipe, record, bytes)) {
        if (errno != EAGAIN) return false;
        if (read(pipe->fd, unread, sizeof unread) < 0 && errno != EINTR && errno != EAGAIN) return false;
    }
    return true;
}

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
#include <unistd.h>

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
    supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                 "notification pipe %s: a part of a notification (%zd bytes of %zu): is something else writing into "
                 "this pipe?",
                 pipe->name->path, got, bytes);
    return PIPE_FAILED;
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

/**
 * The rank's side of a pair: opens it (O1 to O4), counts its credits (C1 to C3), ends it (E4), stops it. The caller
 * holds the handle's lock where other threads may release blocks. Of what the task stores in the header, it uses
 * end_seen and the text of a failure, after it has checked that nobody has cut the file.
 */
#include "pair/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file_lock.h"
#include "base/shared.h"
#include "base/wait.h"
#include "files/result_names.h"

/* How often end_seen is polled: storing it wakes nobody. */
#define END_PAUSE_SECONDS 1e-3

/*
 * Records through the named pipes. Ends are non-blocking: nothing here waits. What a record says is for the caller to
 * check. It runs in the thread that uses the handle; wake-ups (C2) also in one that releases an Arrow array, under the
 * lock.
 */

static bool pipe_has_data(const struct claimed_file *pipe) {
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

/* Writes one record into a claimed pipe. False: the pipe is full. */
static bool pipe_write(const struct claimed_file *pipe, const void *record, size_t bytes) {
    ssize_t put;
    do put = write(pipe->fd, record, bytes);
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)bytes;
}

/* As pipe_write(), but if the pipe is full it first removes what the peer has not read. */
static bool pipe_write_over(const struct claimed_file *pipe, const void *record, size_t bytes) {
    char unread[PIPE_BUF];
    while (!pipe_write(pipe, record, bytes)) {
        if (errno != EAGAIN) return false;
        if (read(pipe->fd, unread, sizeof unread) < 0 && errno != EINTR && errno != EAGAIN) return false;
    }
    return true;
}

static bool request(const struct pair *pair, uint32_t kind) {
    /* A filler has no pipe, and needs no request: the library calls it. */
    if (pair->request_pipe.fd < 0) return false;
    struct request record = {.generation = pair->settings.generation, .kind = kind};
    if (kind == REQUEST_STOP) return pipe_write_over(&pair->request_pipe, &record, sizeof record);
    return pipe_write(&pair->request_pipe, &record, sizeof record);
}

static supply_status_t pair_make_name(struct pair *pair, struct failure *failure) {
    const char *path = pair->settings.files.mapped_file.path;
    int made = pair->settings.address != NULL  ? asprintf(&pair->name, "rank %d (%s)", pair->settings.rank, path)
               : pair->settings.local_rank < 0 ? asprintf(&pair->name, "pair (%s)", path)
                                               : asprintf(&pair->name, "pair %d (%s)", pair->settings.local_rank, path);
    if (made >= 0) return SUPPLY_OK;
    pair->name = NULL;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* After the size of the ring is known: a reader gets it from the first one. */
static supply_status_t allocate(struct pair *pair, struct failure *failure) {
    pair->held = calloc(pair->settings.block_count, sizeof *pair->held);
    pair->exported = calloc(pair->settings.block_count, sizeof *pair->exported);
    if (pair->held == NULL || pair->exported == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return SUPPLY_OK;
}

static supply_status_t open_files(struct pair *pair, struct failure *failure) {
    const struct config_line *files = &pair->settings.files;
    const gid_t group = pair->settings.group;
    TRY(pair_make_name(pair, failure));
    TRY(supply__mapped_file_create(&pair->mapped_file, &pair->settings, failure));
    TRY(allocate(pair, failure));
    TRY(supply__old_results_remove(&pair->settings, failure));
    TRY(supply__claim(&pair->request_pipe, FILE_REQUEST_PIPE, &files->request_pipe, group, failure));
    TRY(supply__claim(&pair->notification_pipe, FILE_NOTIFICATION_PIPE, &files->notification_pipe, group, failure));
    supply__fail_point("O3");
    supply__mapped_file_fill(&pair->mapped_file, &pair->settings);
    if (!request(pair, REQUEST_ATTACH))
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "request pipe %s cannot be written: %m",
                            pair->request_pipe.name->path);
    __atomic_store_n(&pair->mapped_file.header->version, VERSION, __ATOMIC_RELEASE);
    supply__fail_point("O4");
    return SUPPLY_OK;
}

/* A pipe without a name. *own: for both directions, as that of a named pipe. *other: the link's end. */
static bool make_pipe(int *own, int *other, bool is_read) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return false;
    *other = ends[is_read];
    *own = supply__reopen(ends[!is_read], O_RDWR | O_NONBLOCK);
    close(ends[!is_read]);
    return *own >= 0;
}

/* The pair of a rank elsewhere: the same three files, without names. */
static supply_status_t open_link(struct pair *pair, struct failure *failure) {
    int requests = -1, notifications = -1;
    TRY(pair_make_name(pair, failure));
    TRY(supply__mapped_file_create_unnamed(&pair->mapped_file, &pair->settings, failure));
    TRY(allocate(pair, failure));
    pair->request_pipe.name = pair->notification_pipe.name = &pair->settings.files.mapped_file;
    if (!make_pipe(&pair->request_pipe.fd, &requests, false) ||
        !make_pipe(&pair->notification_pipe.fd, &notifications, true)) {
        supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s: no pipe: %m", pair->name);
        if (requests >= 0) close(requests);
        if (notifications >= 0) close(notifications);
        return failure->status;
    }
    supply__mapped_file_fill(&pair->mapped_file, &pair->settings);
    pair->mapped_file.header->version = VERSION;
    return supply__link_begin(&pair->link, &pair->settings, &pair->mapped_file, requests, notifications, failure);
}

supply_status_t supply__pair_open(struct pair *pair, struct settings *settings, struct failure *failure) {
    *pair = (struct pair){
        .settings = *settings,
        .mapped_file = MAPPED_FILE_NONE,
        .request_pipe = CLAIMED_FILE_NONE,
        .notification_pipe = CLAIMED_FILE_NONE,
    };
    *settings = (struct settings){0};
    const supply_status_t status =
        pair->settings.address != NULL ? open_link(pair, failure) : open_files(pair, failure);
    if (status != SUPPLY_OK) supply__pair_close(pair);
    return status;
}

static void free_memory(struct pair *pair) {
    free(pair->held);
    free(pair->exported);
    free(pair->name);
    supply__settings_free(&pair->settings);
    pair->held = NULL;
    pair->exported = NULL;
    pair->name = NULL;
}

bool supply__pair_close(struct pair *pair) {
    int error = 0;
    if (pair->link != NULL) supply__link_close(pair->link);
    pair->link = NULL;
    /* The mapped file first, so that no task attaches to a pair that is closing. */
    if (!supply__mapped_file_remove(&pair->mapped_file)) error = errno;
    if (!supply__claim_remove(&pair->notification_pipe)) error = errno;
    if (!supply__claim_remove(&pair->request_pipe)) error = errno;
    free_memory(pair);
    errno = error;
    return error == 0;
}

void supply__pair_abandon(struct pair *pair) {
    if (pair->link != NULL) supply__link_abandon(pair->link);
    supply__claim_close(&pair->mapped_file.file);
    if (pair->mapped_file.ring_fd >= 0) close(pair->mapped_file.ring_fd);
    pair->mapped_file.ring_fd = -1;
    supply__claim_close(&pair->notification_pipe);
    supply__claim_close(&pair->request_pipe);
    free_memory(pair);
}

static bool *held(const struct pair *pair, uint64_t sequence) {
    return &pair->held[sequence % pair->settings.block_count];
}

static uint32_t *exported(const struct pair *pair, uint64_t sequence) {
    return &pair->exported[sequence % pair->settings.block_count];
}

bool supply__pair_holds(const struct pair *pair, uint64_t sequence) {
    return sequence >= pair->released && sequence < pair->expected && *held(pair, sequence);
}

bool supply__pair_is_full(const struct pair *pair) {
    return pair->expected >= pair->released + pair->settings.block_count;
}

void supply__pair_receive(struct pair *pair) { *held(pair, pair->expected++) = true; }

static void pass_unheld(struct pair *pair) {
    while (pair->released < pair->expected && !*held(pair, pair->released) && *exported(pair, pair->released) == 0)
        pair->released++;
}

void supply__pair_publish_released(struct pair *pair) {
    __atomic_store_n(&pair->credited, pair->released, __ATOMIC_RELEASE);
    __atomic_store_n(&pair->mapped_file.header->released, pair->released, __ATOMIC_RELEASE);
    supply__fail_point("C1");
    /* A full pipe is no failure: the credit is in the header, and the task still has wake-ups to read. */
    request(pair, REQUEST_RELEASE);
    supply__fail_point("C2");
}

void supply__pair_acknowledge(struct pair *pair) {
    __atomic_store_n(&pair->mapped_file.header->acknowledged, pair->expected, __ATOMIC_RELEASE);
    request(pair, REQUEST_RELEASE);
    supply__fail_point("C3");
}

void supply__pair_unhold(struct pair *pair, uint64_t sequence) {
    *held(pair, sequence) = false;
    pass_unheld(pair);
}

void supply__pair_begin_export(struct pair *pair, uint64_t sequence) { ++*exported(pair, sequence); }

void supply__pair_end_export(struct pair *pair, uint64_t sequence) {
    --*exported(pair, sequence);
    pass_unheld(pair);
}

/* Before the end: a program may have cut the file, and what follows writes to the header. */
static supply_status_t check_whole(const struct pair *pair) {
    struct failure failure;
    return supply__mapped_file_check_whole(&pair->mapped_file, &failure);
}

void supply__pair_release_all(struct pair *pair) {
    check_whole(pair);
    const uint64_t before = pair->released;
    for (uint64_t sequence = before; sequence < pair->expected; sequence++) {
        *held(pair, sequence) = false;
        *exported(pair, sequence) = 0;
    }
    pass_unheld(pair);
    if (pair->released != before) supply__pair_publish_released(pair);
}

/* Reads a notification, so that the pipe is never full. SUPPLY_AGAIN: not a failure. */
static supply_status_t read_at_end(struct pair *pair) {
    struct notification notification;
    struct failure failure;
    switch (supply__pipe_read(&pair->notification_pipe, &notification, sizeof notification, &failure)) {
        case PIPE_RECORD:
            return notification.generation == pair->settings.generation && notification.kind == NOTIFICATION_FAILURE
                       ? SUPPLY_ERROR_SPARK
                       : SUPPLY_AGAIN;
        case PIPE_FAILED:
            errno = failure.error;
            return failure.status;
        case PIPE_EMPTY:
            break;
    }
    return SUPPLY_AGAIN;
}

supply_status_t supply__pair_await_end(struct pair *pair, double seconds) {
    const uint32_t *end_seen = &pair->mapped_file.header->end_seen;
    struct wait wait = supply__wait_begin_slow((struct wait_limit){pair->settings.timeout, pair->settings.interruption},
                                               END_PAUSE_SECONDS);
    wait.fd = pair->notification_pipe.fd;
    if (pair->end_limit == 0) pair->end_limit = wait.end;
    wait.end = pair->end_limit;
    wait.part_end = supply__clock_after(seconds);
    if (pair->link != NULL) supply__link_finish(pair->link);
    supply__pair_release_all(pair);
    supply__fail_point("E4");
    supply_status_t status = check_whole(pair);
    while (status == SUPPLY_OK) {
        if (__atomic_load_n(end_seen, __ATOMIC_ACQUIRE) != 0) return SUPPLY_OK;
        status = read_at_end(pair);
        if (status == SUPPLY_AGAIN) status = supply__wait_more(&wait);
        if (status == SUPPLY_OK) status = check_whole(pair);
    }
    return status;
}

supply_status_t supply__pair_fail_by_spark(const struct pair *pair, struct failure *failure) {
    const struct mapped_file_header *header = pair->mapped_file.header;
    char text[sizeof header->task_failure];
    supply__copy_line(text, sizeof text, header->task_failure, sizeof text);
    if (text[0] == '\0')
        return supply__fail(failure, SUPPLY_ERROR_SPARK, "%s: Spark failed and did not say why: see Spark's log",
                            pair->name);
    return supply__fail(failure, SUPPLY_ERROR_SPARK, "%s", text);
}

supply_status_t supply__pair_check_running(const struct pair *pair, struct failure *failure) {
    TRY(supply__mapped_file_check_whole(&pair->mapped_file, failure));
    /* The text is whole when its notification comes (D4). */
    const char first = SHARED_READ(pair->mapped_file.header->task_failure[0]);
    return first != '\0' && pipe_has_data(&pair->notification_pipe) ? supply__pair_fail_by_spark(pair, failure)
                                                                    : SUPPLY_OK;
}

void supply__pair_stop(struct pair *pair, const char *reason) {
    check_whole(pair);
    struct mapped_file_header *header = pair->mapped_file.header;
    supply__copy_line(header->rank_failure, sizeof header->rank_failure, reason, sizeof header->rank_failure);
    request(pair, REQUEST_STOP);
}

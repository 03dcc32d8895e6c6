/**
 * The link's thread looks for the task at the hub, meets it, and passes on what both sides send. After the loss of a
 * connection it begins again; what has arrived stays. The lock covers what other threads ask for: a result, the state.
 */
#include "pair/link.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/wait.h"
#include "pair/pair.h"

/* A hub or an executor that is there answers in this time. The hub says each 10 s that the run lives. */
#define ANSWER_SECONDS 30.0
/* Between two looks for the task: at first, and at most. */
#define PAUSE_SECONDS_MIN 0.05
#define PAUSE_SECONDS_MAX 1.0
/* How long the last messages may take when the rank ends, and its thread, which may look up a name. */
#define END_SECONDS 2.0
#define JOB_PAUSE_SECONDS 1e-3
#define JOIN_SECONDS 5
#define HOST_BYTES 256

/* Answers of the hub. */
enum { PLACE_IS, PLACE_FAILED, PLACE_WAITS, PLACE_ENDED };

enum { REQUESTS_AT_ONCE = 64 };

/* A result that a thread of the program waits for. */
struct job {
    char name[LINK_NAME_BYTES_MAX + 1]; /* "": there is none */
    int fd;
    char reason[1024]; /* "": it is whole */
    bool is_sent;      /* over this connection */
    uint64_t number;   /* among what was sent over it: answers come in this order */
    bool is_done;
    struct failure failure; /* status SUPPLY_OK: it is kept */
};

struct link {
    struct address address;
    struct settings settings; /* texts are not the link's */
    int requests;
    int notifications;
    int stop;
    int memory_fd; /* with the task's lock */
    union {
        uint8_t *memory;
        struct mapped_file_header *header;
    };
    size_t bytes;
    pthread_t thread;

    pthread_mutex_t lock;
    uint32_t references;
    bool is_over;   /* nobody sends a result any more */
    bool is_failed; /* by the program, which has set the state */
    char state[SUPPLY_TEXT_BYTES];
    struct job job;
    uint64_t pieces;             /* of results, that have been sent */
    struct link_result *results; /* that are open */
    bool holds_end;

    /* Of the thread. */
    struct connection connection;
    struct link_notice next; /* read ahead: its first next_bytes */
    size_t next_bytes;
    uint64_t arrived;
    uint64_t notified;        /* of those: the rank knows them */
    uint64_t end;             /* number of END_OF_DATA; UINT64_MAX: it has not come */
    struct block_header last; /* of the last block that has arrived */
    uint64_t released;        /* as the task knows them */
    uint64_t acknowledged;
    void *schema; /* that LINK_SCHEMA has brought, until its LINK_HEADER */
    uint32_t schema_bytes;
    bool has_stopped;
    uint64_t sent, answered; /* results over this connection */
};

static void link_free(struct link *link) {
    const int fds[] = {link->requests, link->notifications, link->stop, link->memory_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    if (link->memory != NULL) munmap(link->memory, link->bytes);
    pthread_mutex_destroy(&link->lock);
    free(link->schema);
    free(link);
}

__attribute__((format(printf, 2, 3))) static void set_state(struct link *link, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&link->lock);
    if (!link->is_failed) vsnprintf(link->state, sizeof link->state, format, arguments);
    pthread_mutex_unlock(&link->lock);
    va_end(arguments);
}

/* P4, for this rank, as far as the pipe has space: a rank may read it only when something else has come. */
static void notify(struct link *link) {
    for (; link->notified < link->arrived; link->notified++) {
        const uint8_t *slot = link->memory + supply__ring_slot_offset(&link->settings, link->notified);
        if (write(link->notifications, slot, sizeof(struct notification)) < 0) return;
    }
}

/* Waits for the connection, a request, or space in the pipe if it is needed. SUPPLY_INTERRUPTED: the link is to end. */
static supply_status_t link_poll(const struct link *link, short events) {
    struct pollfd pollers[] = {{.fd = link->connection.fd, .events = events},
                               {.fd = link->stop, .events = POLLIN},
                               {.fd = link->requests, .events = POLLIN},
                               {.fd = link->notified < link->arrived ? link->notifications : -1, .events = POLLOUT}};
    while (poll(pollers, 4, -1) < 0 && errno == EINTR) {
    }
    return pollers[1].revents != 0 ? SUPPLY_INTERRUPTED : SUPPLY_OK;
}

/* False: the link is to end. */
static bool link_pause(const struct link *link, double seconds) {
    struct pollfd poller = {.fd = link->stop, .events = POLLIN};
    return poll(&poller, 1, (int)(seconds * 1e3)) <= 0;
}

/* The rank fails with that text, as from Spark. */
static void link_fail_rank(struct link *link, const char *text) {
    supply__copy_line(link->header->task_failure, sizeof link->header->task_failure, text, strlen(text));
    const struct notification failed = {.generation = link->settings.generation, .kind = NOTIFICATION_FAILURE};
    struct pollfd pollers[] = {{.fd = link->notifications, .events = POLLOUT}, {.fd = link->stop, .events = POLLIN}};
    while (write(link->notifications, &failed, sizeof failed) < 0 && errno == EAGAIN && poll(pollers, 2, -1) > 0 &&
           pollers[1].revents == 0) {
    }
}

__attribute__((format(printf, 2, 3))) static supply_status_t link_refuse(struct failure *failure, const char *format,
                                                                         ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "the Spark task broke the contract: %s", text);
}

static supply_status_t send_request(struct link *link, uint32_t kind, const void *payload, size_t bytes,
                                    struct failure *failure) {
    const struct link_request request = {
        .kind = kind, .payload_bytes = (uint32_t)bytes, .released = link->released, .acknowledged = link->acknowledged};
    TRY(supply__connection_write_all(&link->connection, &request, sizeof request, ANSWER_SECONDS, failure));
    return supply__connection_write_all(&link->connection, payload, bytes, ANSWER_SECONDS, failure);
}

/* What the rank has released, as far as the task may know it. Returns whether there is news. */
static bool learn_credit(struct link *link) {
    uint64_t released = __atomic_load_n(&link->header->released, __ATOMIC_ACQUIRE);
    const uint64_t acknowledged = __atomic_load_n(&link->header->acknowledged, __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&link->lock);
    if (link->holds_end && released > link->end) released = link->end;
    pthread_mutex_unlock(&link->lock);
    const bool is_news = released != link->released || acknowledged != link->acknowledged;
    link->released = released;
    link->acknowledged = acknowledged;
    return is_news;
}

/* Around each piece of a result. False: nobody waits for it any more, so it ends with that reason. */
static bool goes_on(struct link *link, struct job *job) {
    pthread_mutex_lock(&link->lock);
    link->pieces++;
    const bool is_awaited = link->job.number == job->number;
    pthread_mutex_unlock(&link->lock);
    if (is_awaited && link_pause(link, 0)) return true;
    snprintf(job->reason, sizeof job->reason, "the rank has given it up");
    return false;
}

static supply_status_t send_pieces(struct link *link, struct job *job, struct failure *failure) {
    uint8_t *piece = malloc(LINK_PIECE_BYTES_MAX);
    if (piece == NULL) return supply__fail(failure, SUPPLY_AGAIN, "out of memory");
    supply_status_t status = SUPPLY_OK;
    ssize_t got = 0;
    for (off_t at = 0;
         status == SUPPLY_OK && goes_on(link, job) && (got = pread(job->fd, piece, LINK_PIECE_BYTES_MAX, at)) > 0;
         at += got)
        status = send_request(link, LINK_RESULT_BYTES, piece, (size_t)got, failure);
    if (got < 0) status = supply__fail(failure, SUPPLY_AGAIN, "a result cannot be read: %m");
    free(piece);
    return status;
}

/* Sends the result that a thread waits for, once over each connection. */
static supply_status_t send_job(struct link *link, struct failure *failure) {
    pthread_mutex_lock(&link->lock);
    struct job job = link->job;
    const bool is_new = job.name[0] != '\0' && !job.is_sent;
    link->job.is_sent = true;
    if (is_new) job.number = link->job.number = ++link->sent;
    /* The other thread may give it up meanwhile. */
    if (is_new) job.fd = fcntl(job.fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&link->lock);
    if (!is_new) return SUPPLY_OK;
    supply_status_t status = send_request(link, LINK_RESULT, job.name, strlen(job.name), failure);
    if (status == SUPPLY_OK && job.reason[0] == '\0') status = send_pieces(link, &job, failure);
    if (job.fd >= 0) close(job.fd);
    if (status != SUPPLY_OK) return status;
    return send_request(link, job.reason[0] != '\0' ? LINK_RESULT_ABORT : LINK_RESULT_SEAL, job.reason,
                        strlen(job.reason), failure);
}

/* Sends what the rank has asked for. */
static supply_status_t forward_requests(struct link *link, struct failure *failure) {
    struct request requests[REQUESTS_AT_ONCE];
    bool stops = false;
    ssize_t got;
    while ((got = read(link->requests, requests, sizeof requests)) > 0)
        for (size_t i = 0; i < (size_t)got / sizeof *requests; i++) stops |= requests[i].kind == REQUEST_STOP;
    if (learn_credit(link)) TRY(send_request(link, LINK_CREDIT, NULL, 0, failure));
    if (stops && !link->has_stopped) {
        const char *text = link->header->rank_failure;
        link->has_stopped = true;
        TRY(send_request(link, LINK_STOP, text, strnlen(text, sizeof link->header->rank_failure - 1), failure));
    }
    return send_job(link, failure);
}

/* Reads all of it, and into link->next what has come of the next notice; meanwhile sends what the rank asks for. */
static supply_status_t link_read(struct link *link, void *to, size_t bytes, struct failure *failure) {
    struct iovec parts[2] = {{to, bytes}};
    const size_t ahead = link->next_bytes < bytes ? link->next_bytes : bytes;
    memcpy(to, &link->next, ahead);
    link->next_bytes = 0;
    parts[0].iov_base = (uint8_t *)to + ahead;
    parts[0].iov_len -= ahead;
    while (parts[0].iov_len > 0) {
        short events;
        parts[1] = (struct iovec){&link->next, bytes > sizeof link->next ? sizeof link->next : 0};
        const ssize_t moved = supply__connection_read(&link->connection, parts, 2, &events);
        if (moved > 0) {
            const size_t own = (size_t)moved < parts[0].iov_len ? (size_t)moved : parts[0].iov_len;
            parts[0].iov_base = (uint8_t *)parts[0].iov_base + own;
            parts[0].iov_len -= own;
            link->next_bytes = (size_t)moved - own;
        } else if (moved == 0)
            return supply__fail(failure, SUPPLY_AGAIN, "the executor has closed the connection");
        else if (errno == EAGAIN) {
            notify(link);
            TRY(forward_requests(link, failure));
            TRY(link_poll(link, events));
        } else if (errno != EINTR)
            return supply__fail(failure, SUPPLY_AGAIN, "the connection is lost: %m");
    }
    return SUPPLY_OK;
}

static supply_status_t read_text(struct link *link, uint32_t bytes, char text[SUPPLY_TEXT_BYTES],
                                 struct failure *failure) {
    char received[sizeof link->header->task_failure];
    if (bytes > sizeof received) return link_refuse(failure, "a text has %u bytes", bytes);
    TRY(link_read(link, received, bytes, failure));
    supply__copy_line(text, bytes + 1, received, bytes);
    return SUPPLY_OK;
}

/* The columns: entries and perhaps texts, which the rank checks. A second attempt has the same. */
static supply_status_t store_schema(struct link *link, const struct mapped_file_header *from, struct failure *failure) {
    const bool is_wide = from->schema_bytes != 0;
    const uint64_t bytes = is_wide ? from->schema_bytes : (uint64_t)from->schema_columns * sizeof(struct schema_entry);
    if (link->schema == NULL || bytes != link->schema_bytes || (!is_wide && from->schema_columns > SCHEMA_COLUMNS_MAX))
        return link_refuse(failure, "the schema has %u bytes, and the header says %" PRIu64, link->schema_bytes, bytes);
    const off_t at = is_wide ? (off_t)link->bytes : SCHEMA_OFFSET;
    if (link->header->schema_columns != 0) {
        void *known = malloc(bytes);
        const bool is_same = known != NULL && pread(link->memory_fd, known, bytes, at) == (ssize_t)bytes &&
                             memcmp(known, link->schema, bytes) == 0 &&
                             link->header->schema_columns == from->schema_columns;
        free(known);
        return is_same ? SUPPLY_OK : link_refuse(failure, "an earlier attempt has announced other columns");
    }
    if (pwrite(link->memory_fd, link->schema, bytes, at) != (ssize_t)bytes)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "the schema cannot be stored: %m");
    link->header->schema_bytes = from->schema_bytes;
    link->header->exchange = from->exchange;
    link->header->exchange_seed = from->exchange_seed;
    link->header->exchange_fraction = from->exchange_fraction;
    __atomic_store_n(&link->header->schema_columns, from->schema_columns, __ATOMIC_RELEASE);
    return SUPPLY_OK;
}

/* What the task stores in a header, but not what the link itself counts, and no files: those are on another node. */
static supply_status_t take_header(struct link *link, struct failure *failure) {
    struct mapped_file_header from, *to = link->header;
    TRY(link_read(link, &from, sizeof from, failure));
    to->plan = from.plan;
    to->run = from.run;
    to->task_attempt = from.task_attempt;
    to->task_namespace = from.task_namespace;
    to->epoch_elements = from.epoch_elements;
    to->epoch_steps = from.epoch_steps;
    __atomic_store_n(&to->task_pid, from.task_pid, __ATOMIC_RELAXED);
    __atomic_store_n(&to->attachments, from.attachments, __ATOMIC_RELAXED);
    __atomic_store_n(&to->counts_known, from.counts_known, __ATOMIC_RELEASE);
    if (from.schema_columns != 0 && link->schema != NULL) {
        TRY(store_schema(link, &from, failure));
        free(link->schema);
        link->schema = NULL;
    }
    __atomic_store_n(&to->end_seen, from.end_seen, __ATOMIC_RELEASE);
    return SUPPLY_OK;
}

static supply_status_t take_schema(struct link *link, uint32_t bytes, struct failure *failure) {
    if (bytes == 0 || bytes > SCHEMA_BYTES_MAX) return link_refuse(failure, "a schema has %u bytes", bytes);
    free(link->schema);
    link->schema = malloc(bytes);
    link->schema_bytes = bytes;
    if (link->schema == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return link_read(link, link->schema, bytes, failure);
}

/* P3 and P4: the block goes where the task has it. */
static supply_status_t take_block(struct link *link, uint32_t bytes, struct failure *failure) {
    const struct settings *settings = &link->settings;
    if (bytes < sizeof link->last || bytes > settings->block_bytes)
        return link_refuse(failure, "a block has %u bytes, in slots of %" PRIu64, bytes, settings->block_bytes);
    if (link->arrived - __atomic_load_n(&link->header->released, __ATOMIC_ACQUIRE) >= settings->block_count)
        return link_refuse(failure, "block %" PRIu64 " has come without credit", link->arrived);
    uint8_t *slot = link->memory + supply__ring_slot_offset(settings, link->arrived);
    TRY(link_read(link, slot, bytes, failure));
    memcpy(&link->last, slot, sizeof link->last);
    const struct notification *notification = &link->last.notification;
    if (notification->generation != settings->generation || notification->sequence != link->arrived ||
        notification->size != bytes)
        return link_refuse(failure, "block %" PRIu64 " of %" PRIu64 " bytes has come as %" PRIu64 " of %u",
                           notification->sequence, notification->size, link->arrived, bytes);
    if (notification->kind == NOTIFICATION_END_OF_DATA) link->end = link->arrived;
    __atomic_store_n(&link->header->published, ++link->arrived, __ATOMIC_RELEASE);
    notify(link);
    return SUPPLY_OK;
}

static supply_status_t take_answer(struct link *link, uint32_t bytes, struct failure *failure) {
    char text[SUPPLY_TEXT_BYTES];
    TRY(read_text(link, bytes, text, failure));
    pthread_mutex_lock(&link->lock);
    /* It may be of one for which nobody waits any more. */
    const uint64_t number = ++link->answered;
    if (link->job.is_sent && link->job.number == number) {
        link->job.is_done = true;
        link->job.failure.status = SUPPLY_OK;
        if (text[0] != '\0') supply__fail(&link->job.failure, SUPPLY_ERROR_SPARK, "%s", text);
    }
    pthread_mutex_unlock(&link->lock);
    return SUPPLY_OK;
}

/* Takes notices until the connection ends. SUPPLY_AGAIN: look for the task again. */
static supply_status_t link_serve(struct link *link, struct failure *failure) {
    for (;;) {
        struct link_notice notice;
        TRY(forward_requests(link, failure));
        TRY(link_read(link, &notice, sizeof notice, failure));
        const uint32_t bytes = notice.payload_bytes;
        supply_status_t status;
        switch (notice.kind) {
            case LINK_BLOCK:
                status = take_block(link, bytes, failure);
                break;
            case LINK_SCHEMA:
                status = take_schema(link, bytes, failure);
                break;
            case LINK_HEADER:
                status = bytes == sizeof *link->header ? take_header(link, failure)
                                                       : link_refuse(failure, "a header has %u bytes", bytes);
                break;
            case LINK_KEPT:
                status = take_answer(link, bytes, failure);
                break;
            case LINK_LEFT:
                return supply__fail(failure, SUPPLY_AGAIN, "the Spark task has left, and no other has come yet");
            default:
                status = link_refuse(failure, "a notice is of the unknown kind %u", notice.kind);
        }
        if (status != SUPPLY_OK) return status;
    }
}

/* Opens the connection to the task. SUPPLY_AGAIN: not now. */
static supply_status_t link_meet(struct link *link, const char *place, struct failure *failure) {
    struct address address = link->address;
    if (!supply__address_read_place(&address, place))
        return supply__fail(failure, SUPPLY_AGAIN, "the hub names '%s' as the place of the task", place);
    TRY(supply__connection_open(&link->connection, &address, ROLE_LINK, link->stop, ANSWER_SECONDS, failure));
    uint8_t open[sizeof *link->header + sizeof link->last + RUN_NAME_MAX];
    const size_t name = strlen(address.data);
    memcpy(open, link->header, sizeof *link->header);
    memcpy(open + sizeof *link->header, &link->last, sizeof link->last);
    memcpy(open + sizeof *link->header + sizeof link->last, address.data, name);
    learn_credit(link);
    TRY(send_request(link, LINK_OPEN, open, sizeof *link->header + sizeof link->last + name, failure));
    struct link_notice notice;
    supply_status_t status =
        supply__connection_read_all(&link->connection, &notice, sizeof notice, ANSWER_SECONDS, failure);
    if (status == SUPPLY_INTERRUPTED) {
        /* The rank ends, and the task should know why. */
        link->connection.stop = -1;
        status = supply__connection_read_all(&link->connection, &notice, sizeof notice, END_SECONDS, failure);
    }
    if (status != SUPPLY_OK) return status;
    if (notice.kind == LINK_ACCEPTED && notice.payload_bytes == 0) return SUPPLY_OK;
    char text[SUPPLY_TEXT_BYTES];
    TRY(read_text(link, notice.payload_bytes, text, failure));
    return supply__fail(failure, notice.kind == LINK_BUSY ? SUPPLY_AGAIN : SUPPLY_ERROR_SPARK, "%s", text);
}

static void put_big(uint8_t *to, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static supply_status_t ask_for_place(struct link *link, struct connection *hub, struct failure *failure) {
    uint8_t question[2 * 4 + 2 + RUN_NAME_MAX + 2 + HOST_BYTES];
    char host[HOST_BYTES] = "";
    gethostname(host, sizeof host - 1);
    const size_t name = strlen(link->address.data), of_host = strlen(host);
    put_big(question, (uint32_t)link->settings.rank, 4);
    put_big(question + 4, (uint32_t)link->settings.ranks, 4);
    put_big(question + 8, (uint32_t)name, 2);
    memcpy(question + 10, link->address.data, name);
    put_big(question + 10 + name, (uint32_t)of_host, 2);
    /* With its zero byte, which is not sent. */
    memcpy(question + 12 + name, host, of_host + 1);
    return supply__connection_write_all(hub, question, 12 + name + of_host, ANSWER_SECONDS, failure);
}

/* The write has ended well. */
static supply_status_t take_end(struct link *link, const char *text, struct failure *failure) {
    if (link->end < link->notified) {
        __atomic_store_n(&link->header->end_seen, 1, __ATOMIC_RELEASE);
        return SUPPLY_INTERRUPTED;
    }
    /* A program may read one write of a name after the other. */
    if (link->arrived == 0) return supply__fail(failure, SUPPLY_AGAIN, "%s, and no other has begun yet", text);
    return supply__fail(failure, SUPPLY_ERROR_SPARK, "%s", text);
}

/* Asks the hub where the task is. SUPPLY_OK; SUPPLY_AGAIN: not known now; _SPARK: why the rank gets nothing; or
 * SUPPLY_INTERRUPTED, as link_repeat(). */
static supply_status_t find_place(struct link *link, char place[SUPPLY_TEXT_BYTES], struct failure *failure) {
    struct connection hub = CONNECTION_NONE;
    supply_status_t status =
        supply__connection_open(&hub, &link->address, ROLE_PLACE, link->stop, ANSWER_SECONDS, failure);
    if (status == SUPPLY_OK) status = ask_for_place(link, &hub, failure);
    uint8_t answer[3] = {PLACE_WAITS};
    while (status == SUPPLY_OK && answer[0] == PLACE_WAITS) {
        char text[UINT16_MAX];
        status = supply__connection_read_all(&hub, answer, sizeof answer, ANSWER_SECONDS, failure);
        const size_t bytes = (size_t)answer[1] << 8 | answer[2];
        if (status == SUPPLY_OK) status = supply__connection_read_all(&hub, text, bytes, ANSWER_SECONDS, failure);
        if (status != SUPPLY_OK) break;
        supply__copy_line(place, bytes < SUPPLY_TEXT_BYTES ? bytes + 1 : SUPPLY_TEXT_BYTES, text, bytes);
        if (answer[0] == PLACE_FAILED) status = supply__fail(failure, SUPPLY_ERROR_SPARK, "%s", place);
        if (answer[0] == PLACE_ENDED) status = take_end(link, place, failure);
        /* A sign of life: the rank's time limit begins again. */
        if (answer[0] == PLACE_WAITS) __atomic_add_fetch(&link->header->attachments, 1, __ATOMIC_RELAXED);
        if (answer[0] == PLACE_WAITS) set_state(link, "the driver lives, and Spark has no task for this rank yet");
    }
    supply__connection_close(&hub);
    return status;
}

/* One connection, from its beginning to its end. */
static supply_status_t link_once(struct link *link, bool *has_met, struct failure *failure) {
    char place[SUPPLY_TEXT_BYTES];
    TRY(find_place(link, place, failure));
    link->next_bytes = 0;
    pthread_mutex_lock(&link->lock);
    link->job.is_sent = false;
    pthread_mutex_unlock(&link->lock);
    link->sent = link->answered = 0;
    supply_status_t status = link_meet(link, place, failure);
    if (status == SUPPLY_OK) {
        *has_met = true;
        supply__file_lock(link->memory_fd, F_WRLCK, TASK_LOCK_BYTE);
        /* A frame is sent whole, or it is the last one: a stop is heard between frames. */
        link->connection.stop = -1;
        status = link_serve(link, failure);
        struct failure last;
        if (status == SUPPLY_INTERRUPTED) forward_requests(link, &last);
        supply__file_lock(link->memory_fd, F_UNLCK, TASK_LOCK_BYTE);
    }
    supply__connection_close(&link->connection);
    return status;
}

/* SUPPLY_INTERRUPTED: the link is to end, or has done all. Otherwise the rank gets nothing more. */
static supply_status_t link_repeat(struct link *link, struct failure *failure) {
    double pause = PAUSE_SECONDS_MIN;
    for (;;) {
        bool has_met = false;
        const supply_status_t status = link_once(link, &has_met, failure);
        if (status == SUPPLY_INTERRUPTED || link->header->end_seen != 0) return SUPPLY_INTERRUPTED;
        set_state(link, "%s", failure->text);
        if (status != SUPPLY_AGAIN) return status;
        if (has_met) pause = PAUSE_SECONDS_MIN;
        if (!link_pause(link, pause)) return SUPPLY_INTERRUPTED;
        pause = pause * 2 < PAUSE_SECONDS_MAX ? pause * 2 : PAUSE_SECONDS_MAX;
    }
}

static void *link_run(void *context) {
    struct link *link = context;
    struct failure failure = {0};
    const supply_status_t status = link_repeat(link, &failure);
    pthread_mutex_lock(&link->lock);
    link->is_over = true;
    if (link->is_failed) memcpy(failure.text, link->state, sizeof failure.text);
    const bool fails = link->is_failed || status != SUPPLY_INTERRUPTED;
    pthread_mutex_unlock(&link->lock);
    if (fails) link_fail_rank(link, failure.text);
    return NULL;
}

static supply_status_t link_start(struct link *link, struct failure *failure) {
    link->memory_fd = supply__reopen(link->memory_fd, O_RDWR);
    link->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    void *memory = link->memory_fd >= 0
                       ? mmap(NULL, link->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, link->memory_fd, 0)
                       : MAP_FAILED;
    if (link->stop < 0 || memory == MAP_FAILED)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s: no memory for its link: %m", link->address.text);
    link->memory = memory;
    /* Signals are for the program's threads. And OpenSSL writes without MSG_NOSIGNAL. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&link->thread, NULL, link_run, link);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s: no thread for its link: %s", link->address.text,
                        strerror(error));
}

supply_status_t supply__link_begin(struct link **link, const struct settings *settings,
                                   const struct mapped_file *mapped, int requests, int notifications,
                                   struct failure *failure) {
    struct link *made = calloc(1, sizeof *made);
    if (made == NULL) {
        close(requests);
        close(notifications);
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    *made = (struct link){.address = *settings->address,
                          .settings = *settings,
                          .requests = requests,
                          .notifications = notifications,
                          .stop = -1,
                          .memory_fd = mapped->file.fd,
                          .bytes = mapped->bytes,
                          .references = 1,
                          .state = "it looks for the driver",
                          .connection = CONNECTION_NONE,
                          .end = UINT64_MAX};
    pthread_mutex_init(&made->lock, NULL);
    const supply_status_t status = link_start(made, failure);
    if (status == SUPPLY_OK)
        *link = made;
    else
        link_free(made);
    return status;
}

/* As a request of the rank. */
static void wake(struct link *link) {
    const int fd = supply__reopen(link->requests, O_WRONLY | O_NONBLOCK);
    const struct request request = {.generation = link->settings.generation, .kind = REQUEST_RELEASE};
    /* If the pipe is full, the thread will read it, too. */
    if (fd >= 0 && write(fd, &request, sizeof request) < 0 && errno != EAGAIN) errno = 0;
    if (fd >= 0) close(fd);
}

void supply__link_hold_end(struct link *link) {
    pthread_mutex_lock(&link->lock);
    link->holds_end = true;
    pthread_mutex_unlock(&link->lock);
}

void supply__link_finish(struct link *link) {
    pthread_mutex_lock(&link->lock);
    link->holds_end = false;
    pthread_mutex_unlock(&link->lock);
    wake(link);
}

void supply__link_state(struct link *link, char text[SUPPLY_TEXT_BYTES]) {
    pthread_mutex_lock(&link->lock);
    memcpy(text, link->state, SUPPLY_TEXT_BYTES);
    pthread_mutex_unlock(&link->lock);
}

/* Ends the thread's waits. */
static void link_stop(const struct link *link) {
    const uint64_t one = 1;
    /* It counts far enough. */
    if (write(link->stop, &one, sizeof one) < 0) errno = 0;
}

void supply__link_fail(struct link *link, const char *text) {
    pthread_mutex_lock(&link->lock);
    if (!link->is_over) snprintf(link->state, sizeof link->state, "%s", text);
    link->is_failed = true;
    pthread_mutex_unlock(&link->lock);
    link_stop(link);
}

bool supply__link_add(struct link *link, struct link_result *result) {
    pthread_mutex_lock(&link->lock);
    const struct link_result *same = link->results;
    while (same != NULL && strcmp(same->name, result->name) != 0) same = same->next;
    if (same == NULL) {
        result->next = link->results;
        link->results = result;
        link->references++;
    }
    pthread_mutex_unlock(&link->lock);
    return same == NULL;
}

void supply__link_drop(struct link *link, const struct link_result *result) {
    pthread_mutex_lock(&link->lock);
    struct link_result **at = &link->results;
    while (*at != NULL && *at != result) at = &(*at)->next;
    if (*at != NULL) *at = result->next;
    const bool is_last = --link->references == 0;
    pthread_mutex_unlock(&link->lock);
    if (is_last) link_free(link);
}

void supply__link_close(struct link *link) {
    /* Who waits for a result must not ask the program any more (interrupted). */
    pthread_mutex_lock(&link->lock);
    link->is_over = true;
    pthread_mutex_unlock(&link->lock);
    link_stop(link);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += JOIN_SECONDS;
    /* The search for a name cannot be stopped: then the link stays for its thread. */
    if (pthread_timedjoin_np(link->thread, NULL, &end) == 0)
        supply__link_drop(link, NULL);
    else
        pthread_detach(link->thread);
}

void supply__link_abandon(struct link *link) {
    const int fds[] = {link->requests, link->notifications, link->stop, link->memory_fd, link->connection.fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
}

/* SUPPLY_OK when the condition holds; or why the wait is over. The caller has the lock. */
static supply_status_t await_job(struct link *link, const struct job *job, struct wait *wait,
                                 bool (*holds)(const struct link *link)) {
    supply_status_t status = SUPPLY_OK;
    while (status == SUPPLY_OK && !holds(link)) {
        const uint64_t pieces = link->pieces;
        pthread_mutex_unlock(&link->lock);
        status = supply__wait_more(wait);
        pthread_mutex_lock(&link->lock);
        /* The limit is one without progress, except to say why there is no result. */
        if (link->pieces != pieces && job->reason[0] == '\0') wait->end = supply__clock_after(link->settings.timeout);
    }
    return status;
}

static bool has_no_job(const struct link *link) { return link->job.name[0] == '\0'; }

static bool job_is_over(const struct link *link) { return link->job.is_done || link->is_over; }

supply_status_t supply__link_keep(struct link *link, const char *name, int fd, const char *reason,
                                  struct failure *failure) {
    struct job job = {.fd = fd};
    snprintf(job.name, sizeof job.name, "%s", name);
    if (reason != NULL) supply__copy_line(job.reason, sizeof job.reason, reason, sizeof job.reason);
    const struct wait_limit limit = {link->settings.timeout, link->settings.interruption}, last = {END_SECONDS, {0}};
    struct wait wait = supply__wait_begin_slow(reason != NULL ? last : limit, JOB_PAUSE_SECONDS);
    pthread_mutex_lock(&link->lock);
    /* Another thread may wait for another result. */
    supply_status_t status = await_job(link, &job, &wait, has_no_job);
    if (status == SUPPLY_OK) {
        link->job = job;
        wake(link);
        status = await_job(link, &job, &wait, job_is_over);
        job = link->job;
        link->job = (struct job){0};
    }
    pthread_mutex_unlock(&link->lock);
    if (job.is_done && job.failure.status != SUPPLY_OK)
        return supply__fail(failure, job.failure.status, "%s", job.failure.text);
    if (job.is_done) return SUPPLY_OK;
    if (status == SUPPLY_INTERRUPTED) return status;
    char state[SUPPLY_TEXT_BYTES];
    supply__link_state(link, state);
    if (status == SUPPLY_OK)
        return supply__fail(
            failure, SUPPLY_ERROR_SPARK,
            "Spark's task has left (%s): begin results before the end of the data, and seal them before "
            "you close it",
            state);
    return supply__fail(failure, status,
                        "Spark's executor has taken nothing of it for %g s: %s (--timeout / SUPPLY_TIMEOUT)",
                        link->settings.timeout, state);
}

/**
 * R1 to R4: from a notification to a block that the program may read; C1 and C2: its release, by the program or by the
 * last Arrow array of it. The thread that uses the handle receives; the lock covers only the pair's counts. A
 * notification is trusted only after R3.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/handle.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file_lock.h"
#include "base/opener.h"
#include "base/wait.h"

/* How long a rank polls for the next block before it sleeps. */
enum { SPIN_NANOSECONDS = 200000 };

/* How often a waiting call asks options.interrupted. */
#define INTERRUPTION_SECONDS 0.1

/* In a time limit: how often a rank checks whether its task has come or left. Neither wakes it. */
enum { WATCHES = 8 };

/* What a pipe holds. A writer of endless notifications that are dropped (R2) must not outlast the rank's time limit. */
enum { DRAIN_NOTIFICATIONS = 1024 };

static uint32_t task_pid(const supply_t *supply) {
    return __atomic_load_n(&supply->pair.mapped_file.header->task_pid, __ATOMIC_RELAXED);
}

static uint32_t task_attempt(const supply_t *supply) {
    return __atomic_load_n(&supply->pair.mapped_file.header->task_attempt, __ATOMIC_RELAXED);
}

static bool task_is_attached(const supply_t *supply) {
    return supply__file_is_locked(supply->pair.mapped_file.file.fd, F_WRLCK, TASK_LOCK_BYTE);
}

static supply_status_t fail_by_timeout(supply_t *supply) {
    const char *name = supply->pair.name;
    const double limit = supply->pair.settings.timeout;
    const uint32_t pid = task_pid(supply), attempt = task_attempt(supply);
    if (supply->pair.link != NULL && !task_is_attached(supply)) {
        char state[SUPPLY_TEXT_BYTES];
        supply__link_state(supply->pair.link, state);
        return supply__fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                            "no Spark task has met %s for %g s: %s (--timeout / SUPPLY_TIMEOUT)", name, limit, state);
    }
    if (pid == 0)
        return supply__fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                            "no Spark task attached to %s within %g s: is the Supplier running on this node with the "
                            "same mapped-files.conf? (--timeout / SUPPLY_TIMEOUT)",
                            name, limit);
    if (!task_is_attached(supply))
        return supply__fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                            "the Spark task of %s (process %u, attempt %u) has left and no other attempt came within "
                            "%g s: see Spark's log (--timeout / SUPPLY_TIMEOUT)",
                            name, pid, attempt, limit);
    return supply__fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                        "the Spark task of %s (process %u, attempt %u) is attached and has supplied nothing for %g s: "
                        "is its source slow or its executor stalled? (--timeout / SUPPLY_TIMEOUT)",
                        name, pid, attempt, limit);
}

supply_status_t supply__check_credit(supply_t *supply, const char *advice) {
    supply__lock(supply);
    const bool is_full = supply__pair_is_full(&supply->pair);
    const uint64_t released = supply->pair.released;
    supply__unlock(supply);
    if (!is_full) return SUPPLY_AGAIN;
    return supply__fail(&supply->failure, SUPPLY_ERROR_ALL_HELD,
                        "%s: the %s has no slot left, because block %" PRIu64 " is still held: release it first%s",
                        supply->pair.name, supply->is_filled ? "ring" : "task", released, advice);
}

/* The released blocks from this one on count as consumed. After that the task may fill their slots. */
static void consume_and_publish(supply_t *supply, uint64_t sequence) {
    if (sequence == supply->pair.released) return;
    for (; sequence < supply->pair.released; sequence++)
        supply__position_advance(&supply->consumed,
                                 &supply__blocks_at(&supply->blocks, &supply->pair, sequence)->notification);
    supply__pair_publish_released(&supply->pair);
}

static void release(supply_t *supply, uint64_t sequence) {
    const uint64_t first = supply->pair.released;
    supply__pair_unhold(&supply->pair, sequence);
    consume_and_publish(supply, first);
}

void supply__release_block(supply_t *supply, uint64_t sequence) {
    supply__lock(supply);
    release(supply, sequence);
    supply__unlock(supply);
}

void supply__begin_export(supply_t *supply, uint64_t sequence) {
    supply__exports_add(supply->exports);
    supply__lock(supply);
    supply__pair_begin_export(&supply->pair, sequence);
    supply__unlock(supply);
}

/* Such an array is released: as supply__release_block(). The caller has the lock. */
static void end_export(supply_t *supply, uint64_t sequence) {
    const uint64_t first = supply->pair.released;
    supply__pair_end_export(&supply->pair, sequence);
    consume_and_publish(supply, first);
}

/* A checked block; or the end of an epoch or of the data, which has no elements and is released at once. */
static supply_status_t hand_out(supply_t *supply, const struct notification *notification, supply_block_t *block) {
    const uint64_t sequence = supply->pair.expected;
    const struct block *checked = supply__blocks_at(&supply->blocks, &supply->pair, sequence);
    const bool is_block = notification->kind == NOTIFICATION_BLOCK;
    supply__pair_receive(&supply->pair);
    supply->epoch = notification->epoch;
    *block = (supply_block_t){
        .sequence = sequence,
        .epoch = notification->epoch,
        .partition = notification->partition,
        .first_element = notification->first_element,
        .element_count = notification->element_count,
        .column_count = is_block ? (int)supply->blocks.schema.column_count : 0,
        .address = checked->address,
        .bytes = notification->size,
    };
    if (!is_block) {
        release(supply, sequence);
        supply->at_end_of_epoch = notification->kind == NOTIFICATION_END_OF_EPOCH;
        if (supply->at_end_of_epoch) return SUPPLY_END_OF_EPOCH;
        supply->at_end_of_data = true;
        return SUPPLY_END_OF_DATA;
    }
    supply->statistics.blocks++;
    supply->statistics.elements += block->element_count;
    supply->statistics.bytes += block->bytes + checked->referenced_bytes;
    return SUPPLY_OK;
}

/* The program must not read the elements of the pair as they are: it would see others than the ranks that exchange. */
static supply_status_t check_exchange(supply_t *supply) {
    if (supply->claimed || supply->is_filled) return SUPPLY_OK;
    const char *name = supply->pair.name;
    if (supply->pair.settings.start.exchange.is_set)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                            "%s: the position is one of an exchange: call supply_exchange_open() before supply_next()",
                            name);
    if (__atomic_load_n(&supply->pair.mapped_file.header->exchange, __ATOMIC_RELAXED) != 0)
        return supply__fail(
            &supply->failure, SUPPLY_ERROR_ARGUMENT,
            "%s: Spark was started with --shuffle all: call supply_exchange_open() before supply_next()", name);
    return SUPPLY_OK;
}

supply_status_t supply__take(supply_t *supply, const struct notification *notification, supply_block_t *block) {
    if (notification->generation != supply->pair.settings.generation) return SUPPLY_AGAIN;
    if (notification->kind == NOTIFICATION_FAILURE) return supply__pair_fail_by_spark(&supply->pair, &supply->failure);
    if (notification->kind != NOTIFICATION_BLOCK && notification->kind != NOTIFICATION_END_OF_EPOCH &&
        notification->kind != NOTIFICATION_END_OF_DATA)
        return supply__fail(&supply->failure, SUPPLY_ERROR_CONTRACT,
                            "%s: notification.kind is %u, which contract %s does not know", supply->pair.name,
                            notification->kind, supply_contract_version());
    if (notification->sequence < supply->pair.expected) return SUPPLY_AGAIN;
    supply__fail_point("R2");
    TRY(check_exchange(supply));
    TRY(supply__block_check(&supply->blocks, &supply->pair, notification, &supply->failure));
    supply__fail_point("R3");
    supply__lock(supply);
    const supply_status_t status = hand_out(supply, notification, block);
    supply__unlock(supply);
    supply__fail_point("R4");
    return status;
}

/* Reads notifications until one is not dropped. SUPPLY_AGAIN: there was none. */
static supply_status_t drain(supply_t *supply, supply_block_t *block) {
    struct notification notification;
    for (int records = 0; records < DRAIN_NOTIFICATIONS; records++) {
        switch (
            supply__pipe_read(&supply->pair.notification_pipe, &notification, sizeof notification, &supply->failure)) {
            case PIPE_RECORD: {
                supply__fail_point("R1");
                supply_status_t status = supply__take(supply, &notification, block);
                if (status != SUPPLY_AGAIN) return status;
                break;
            }
            case PIPE_FAILED:
                return supply->failure.status;
            case PIPE_EMPTY:
                return supply__check_credit(supply, ", or set ring= larger");
        }
    }
    return SUPPLY_AGAIN;
}

/* Notes whether a task has come or left. The count shows a task that has done both since the last check. */
static void watch_task(supply_t *supply) {
    const uint32_t attachments = __atomic_load_n(&supply->pair.mapped_file.header->attachments, __ATOMIC_RELAXED);
    const bool was_attached = supply->task_is_attached;
    supply->task_is_attached = task_is_attached(supply);
    supply->watched_at = supply__clock_now();
    if (attachments != supply->attachments || (was_attached && !supply->task_is_attached))
        supply->task_changed_at = supply->watched_at;
    supply->attachments = attachments;
}

/* When a wait since then is over: the next attempt of a task that has left has the whole time limit again. */
static int64_t time_limit(const supply_t *supply, int64_t since) {
    const int64_t from = supply->task_changed_at > since ? supply->task_changed_at : since;
    return from + (int64_t)(supply->pair.settings.timeout * NANOSECONDS);
}

static bool is_over(supply_t *supply, int64_t since, int64_t now) {
    const int64_t next_watch = supply->watched_at + (int64_t)(supply->pair.settings.timeout / WATCHES * NANOSECONDS);
    if (now >= next_watch || now >= time_limit(supply, since)) watch_task(supply);
    return now >= time_limit(supply, since);
}

/*
 * Waking a rank costs the task 15 to 30 microseconds, in which it could copy a few hundred kilobytes. If the last wait
 * was short, the rank polls for the next block instead, and yields its core to others that want it.
 */
static supply_status_t spin(supply_t *supply, const struct wait *wait, supply_block_t *block) {
    supply_status_t status = SUPPLY_AGAIN;
    while (status == SUPPLY_AGAIN && supply__clock_now() - wait->since < SPIN_NANOSECONDS) {
        if (__atomic_load_n(&supply->pair.mapped_file.header->published, __ATOMIC_RELAXED) > supply->pair.expected)
            status = drain(supply, block);
        else
            sched_yield();
    }
    return status;
}

static supply_status_t sleep_and_drain(supply_t *supply, struct wait *wait, supply_block_t *block) {
    supply__fail_point("R0");
    watch_task(supply);
    wait->end = time_limit(supply, wait->since);
    supply_status_t status = supply__wait_more(wait);
    if (status == SUPPLY_ERROR_TIMEOUT) return fail_by_timeout(supply);
    if (status == SUPPLY_ERROR_SYSTEM)
        return supply__fail(&supply->failure, SUPPLY_ERROR_SYSTEM, "%s: poll failed: %m", supply->pair.name);
    if (status == SUPPLY_OK) status = supply__mapped_file_check_whole(&supply->pair.mapped_file, &supply->failure);
    return status == SUPPLY_OK ? drain(supply, block) : status;
}

/* Returns the nanoseconds since then. */
static int64_t count_wait(supply_t *supply, int64_t since) {
    const int64_t waited = supply__clock_now() - since;
    supply->statistics.seconds_waited += (double)waited / NANOSECONDS;
    return waited;
}

void supply__pause_wait(supply_t *supply) {
    if (supply == NULL) return;
    if (supply->quiet_since != 0) count_wait(supply, supply->quiet_since);
    supply->quiet_since = 0;
}

static supply_status_t receive_waiting(supply_t *supply, supply_block_t *block) {
    supply__pause_wait(supply);
    supply_status_t status = drain(supply, block);
    if (status != SUPPLY_AGAIN) return status;
    const struct settings *settings = &supply->pair.settings;
    const struct wait_limit limit = {settings->timeout, settings->interruption};
    double pause = settings->timeout / WATCHES;
    if (settings->interruption.interrupted != NULL && pause > INTERRUPTION_SECONDS) pause = INTERRUPTION_SECONDS;
    struct wait wait = supply__wait_begin_slow(limit, pause);
    wait.fd = supply->pair.notification_pipe.fd;
    if (supply->last_wait < SPIN_NANOSECONDS) status = spin(supply, &wait, block);
    while (status == SUPPLY_AGAIN) status = sleep_and_drain(supply, &wait, block);
    supply->last_wait = count_wait(supply, wait.since);
    return status;
}

static supply_status_t receive_trying(supply_t *supply, supply_block_t *block) {
    const bool was_quiet = supply->quiet_since != 0;
    const int64_t since = was_quiet ? supply->quiet_since : supply__clock_now();
    /* Before the pipe is read, so that a rank that was suspended past its limit finds what came meanwhile. */
    const int64_t now = supply__clock_now();
    supply_status_t status = drain(supply, block);
    if (status == SUPPLY_AGAIN && is_over(supply, since, now)) status = fail_by_timeout(supply);
    supply->quiet_since = status == SUPPLY_AGAIN ? since : 0;
    if (was_quiet && status != SUPPLY_AGAIN) count_wait(supply, since);
    return status;
}

supply_status_t supply__check_unbroken(supply_t *supply) {
    if (supply->broken.status != SUPPLY_OK) supply->failure = supply->broken;
    return supply->broken.status;
}

supply_status_t supply__receive(supply_t *supply, supply_block_t *block, bool wait) {
    if (supply__check_unbroken(supply) != SUPPLY_OK) return supply->broken.status;
    supply->failure.status = SUPPLY_OK;
    if (supply->at_end_of_data) return supply->received = SUPPLY_END_OF_DATA;
    supply_status_t status =
        supply->is_filled ? SUPPLY_OK : supply__mapped_file_check_whole(&supply->pair.mapped_file, &supply->failure);
    if (status == SUPPLY_OK) {
        if (supply->at_end_of_epoch) supply__pair_acknowledge(&supply->pair);
        supply->at_end_of_epoch = false;
        status = supply->is_filled ? supply__filler_receive(supply, block, wait)
                 : wait            ? receive_waiting(supply, block)
                                   : receive_trying(supply, block);
    }
    if (status < 0 && status != SUPPLY_ERROR_TIMEOUT && status != SUPPLY_ERROR_ALL_HELD)
        supply->broken = supply->failure;
    return supply->received = status;
}

/* State that a handle shares with its Arrow arrays: any thread releases these, some only after supply_close(). */

struct exports *supply__exports_new(supply_t *supply) {
    struct exports *exports = calloc(1, sizeof *exports);
    if (exports == NULL || (exports->is_mine = supply__opener_mark()) == NULL) {
        free(exports);
        return NULL;
    }
    pthread_mutex_init(&exports->lock, NULL);
    exports->references = 1;
    exports->supply = supply;
    exports->process = getpid();
    return exports;
}

void supply__lock(const supply_t *supply) {
    if (*supply->exports->is_mine) pthread_mutex_lock(&supply->exports->lock);
}

void supply__unlock(const supply_t *supply) {
    if (*supply->exports->is_mine) pthread_mutex_unlock(&supply->exports->lock);
}

void supply__exports_add(struct exports *exports) { __atomic_add_fetch(&exports->references, 1, __ATOMIC_RELAXED); }

void supply__exports_drop(struct exports *exports) {
    if (__atomic_sub_fetch(&exports->references, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (uint32_t i = 0; i < exports->mappings.count; i++)
        munmap(exports->mappings.list[i].address, exports->mappings.list[i].bytes);
    pthread_mutex_destroy(&exports->lock);
    supply__opener_free(exports->is_mine);
    free(exports);
}

void supply__exports_remove(struct exports *exports, uint64_t sequence) {
    /* In a forked child the lock may be held by a thread that does not exist there. */
    if (!*exports->is_mine) return;
    pthread_mutex_lock(&exports->lock);
    if (exports->supply != NULL) end_export(exports->supply, sequence);
    pthread_mutex_unlock(&exports->lock);
    supply__exports_drop(exports);
}

void supply__exports_detach(struct exports *exports) {
    pthread_mutex_lock(&exports->lock);
    exports->supply = NULL;
    pthread_mutex_unlock(&exports->lock);
}

void supply__exports_leave(struct exports *exports, const struct exported_mappings *mappings) {
    exports->mappings = *mappings;
    supply__exports_drop(exports);
}

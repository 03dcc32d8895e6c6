/** R1 to R4: from the notification pipe to a block that may be read. */
#include <inttypes.h>
#include <sched.h>

#include "clock.h"
#include "fail_point.h"
#include "file_lock.h"
#include "handle.h"

/* How long a rank looks for the next block itself, before it has the task wake it. */
enum { LOOK_NANOSECONDS = 200000 };

/* As many as a pipe holds: whoever writes without end what is dropped (R2) must not keep the rank beyond its time
 * limit. */
enum { DRAIN_NOTIFICATIONS = 1024 };

static const struct mapped_file_header *header(const supply_t *supply) {
    return supply_mapped_header(&supply->pair.mapped_file);
}

static uint32_t task_pid(const supply_t *supply) {
    return __atomic_load_n(&header(supply)->task_pid, __ATOMIC_RELAXED);
}

static uint32_t task_attempt(const supply_t *supply) {
    return __atomic_load_n(&header(supply)->task_attempt, __ATOMIC_RELAXED);
}

/* The lock tells. The pipe does not: a task may come and leave between two looks at it. */
static bool task_is_attached(const supply_t *supply) {
    return supply_file_is_locked(supply->pair.mapped_file.file.fd, F_WRLCK, TASK_LOCK_BYTE);
}

static supply_status_t fail_by_spark(supply_t *supply) {
    struct failure *failure = &supply->failure;
    char text[sizeof header(supply)->task_failure];
    supply_copy_line(text, sizeof text, header(supply)->task_failure, sizeof text);
    if (text[0] == '\0')
        return supply_fail(failure, SUPPLY_ERROR_SPARK, "%s: Spark gave up and did not say why: see the Supplier's log",
                           supply->pair.name);
    return supply_fail(failure, SUPPLY_ERROR_SPARK, "%s", text);
}

static supply_status_t fail_by_timeout(supply_t *supply) {
    const char *name = supply->pair.name;
    const double limit = supply->pair.settings.timeout;
    const uint32_t pid = task_pid(supply), attempt = task_attempt(supply);
    if (pid == 0)
        return supply_fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                           "no Spark task attached to %s within %g s: is the Supplier running on this node with the "
                           "same mapped-files.conf? (--timeout / SUPPLY_TIMEOUT)",
                           name, limit);
    if (!task_is_attached(supply))
        return supply_fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                           "the Spark task of %s (process %u, attempt %u) has left and no other attempt came within "
                           "%g s: see the Supplier's log (--timeout / SUPPLY_TIMEOUT)",
                           name, pid, attempt, limit);
    return supply_fail(&supply->failure, SUPPLY_ERROR_TIMEOUT,
                       "the Spark task of %s (process %u, attempt %u) is attached and has supplied nothing for %g s: "
                       "is its source slow or its executor stalled? (--timeout / SUPPLY_TIMEOUT)",
                       name, pid, attempt, limit);
}

/* Nothing is there; nothing can come where every slot is held. */
static supply_status_t find_nothing(supply_t *supply) {
    supply_lock(supply);
    const bool is_full = supply_pair_is_full(&supply->pair);
    const uint64_t released = supply->pair.released;
    supply_unlock(supply);
    if (!is_full) return SUPPLY_AGAIN;
    return supply_fail(&supply->failure, SUPPLY_ERROR_ALL_HELD,
                       "%s: the task has no slot left, because block %" PRIu64
                       " is still held: release it first, or set ring= (--ring) larger",
                       supply->pair.name, released);
}

static supply_status_t fail_by_kind(supply_t *supply, uint32_t kind) {
    return supply_fail(&supply->failure, SUPPLY_ERROR_CONTRACT,
                       "%s: notification.kind is %u, which contract %s does not know", supply->pair.name, kind,
                       supply_contract_version());
}

/* What has been released since then counts as consumed. */
static void pass(supply_t *supply, uint64_t passed) {
    for (; passed < supply->pair.released; passed++)
        supply_position_pass(&supply->consumed,
                             &supply_blocks_at(&supply->blocks, &supply->pair, passed)->notification);
}

static void release(supply_t *supply, uint64_t sequence) {
    const uint64_t passed = supply->pair.released;
    supply_pair_release(&supply->pair, sequence);
    pass(supply, passed);
}

void supply_give_back(supply_t *supply, uint64_t sequence) {
    supply_lock(supply);
    release(supply, sequence);
    supply_unlock(supply);
}

bool supply_holds(const supply_t *supply, uint64_t sequence) {
    supply_lock(supply);
    const bool holds = supply_pair_holds(&supply->pair, sequence);
    supply_unlock(supply);
    return holds;
}

void supply_begin_export(supply_t *supply, uint64_t sequence) {
    supply_exports_add(supply->exports);
    supply_lock(supply);
    supply_pair_begin_export(&supply->pair, sequence);
    supply_unlock(supply);
}

void supply_end_export(supply_t *supply, uint64_t sequence) {
    const uint64_t passed = supply->pair.released;
    supply_pair_end_export(&supply->pair, sequence);
    pass(supply, passed);
}

/* A checked block, or an end of one kind or the other, which has no elements and is released at once. */
static supply_status_t hand_out(supply_t *supply, const struct notification *notification, supply_block_t *block) {
    const uint64_t sequence = supply->pair.expected;
    const struct block *checked = supply_blocks_at(&supply->blocks, &supply->pair, sequence);
    const bool is_block = notification->kind == NOTIFICATION_BLOCK;
    supply_pair_receive(&supply->pair);
    supply->epoch = notification->epoch;
    *block = (supply_block_t){
        .sequence = sequence,
        .epoch = notification->epoch,
        .partition = notification->partition,
        .first_element = notification->first_element,
        .element_count = notification->element_count,
        .column_count = is_block ? supply->blocks.schema.count : 0,
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
    supply->statistics.bytes += block->bytes;
    return SUPPLY_OK;
}

/* What one notification comes to; SUPPLY_AGAIN: it is to be dropped (R2). */
static supply_status_t take(supply_t *supply, const struct notification *notification, supply_block_t *block) {
    if (notification->generation != supply->pair.settings.generation) return SUPPLY_AGAIN;
    if (notification->kind >= KIND_OPTIONAL_MIN) return SUPPLY_AGAIN;
    if (notification->kind == NOTIFICATION_FAILURE) return fail_by_spark(supply);
    if (notification->kind != NOTIFICATION_BLOCK && notification->kind != NOTIFICATION_END_OF_EPOCH &&
        notification->kind != NOTIFICATION_END_OF_DATA)
        return fail_by_kind(supply, notification->kind);
    if (notification->sequence < supply->pair.expected) return SUPPLY_AGAIN;
    supply_fail_point("R2");
    supply_lock(supply);
    supply_status_t status = supply_block_check(&supply->blocks, &supply->pair, notification, &supply->failure);
    if (status == SUPPLY_OK) {
        supply_fail_point("R3");
        status = hand_out(supply, notification, block);
    }
    supply_unlock(supply);
    if (status >= 0) supply_fail_point("R4");
    return status;
}

/* Reads what is there until it comes to something; SUPPLY_AGAIN: nothing has, and the caller is to look at its time
 * limit. */
static supply_status_t drain(supply_t *supply, supply_block_t *block) {
    struct notification notification;
    for (int records = 0; records < DRAIN_NOTIFICATIONS; records++) {
        switch (
            supply_pipe_read(&supply->pair.notification_pipe, &notification, sizeof notification, &supply->failure)) {
            case PIPE_RECORD: {
                supply_fail_point("R1");
                supply_status_t status = take(supply, &notification, block);
                if (status != SUPPLY_AGAIN) return status;
                break;
            }
            case PIPE_WRITER_LEFT:
                supply->task_left_at = supply_clock_now();
                break;
            case PIPE_FAILED:
                return supply->failure.status;
            case PIPE_EMPTY:
                return find_nothing(supply);
        }
    }
    return SUPPLY_AGAIN;
}

/* The limit counts from the last sign of change: a task that leaves gives the next attempt a whole one. */
static int64_t deadline(const supply_t *supply, int64_t since) {
    int64_t from = supply->task_left_at > since ? supply->task_left_at : since;
    return from + (int64_t)(supply->pair.settings.timeout * 1e9);
}

/*
 * Waking a rank takes the task 15 to 30 microseconds, in which it could copy a few hundred kilobytes. Where blocks come
 * so fast that the last wait was short, the rank looks for the next one instead, and lets everybody else run who wants
 * its core.
 */
static supply_status_t look(supply_t *supply, int64_t since, supply_block_t *block) {
    supply_status_t status = SUPPLY_AGAIN;
    while (status == SUPPLY_AGAIN && supply_clock_now() - since < LOOK_NANOSECONDS) {
        if (__atomic_load_n(&header(supply)->published, __ATOMIC_RELAXED) > supply->pair.expected)
            status = drain(supply, block);
        else
            sched_yield();
    }
    return status;
}

static supply_status_t drain_waiting(supply_t *supply, supply_block_t *block) {
    supply_status_t status = drain(supply, block);
    if (status != SUPPLY_AGAIN) return status;
    const int64_t since = supply_clock_now();
    if (supply->last_wait < LOOK_NANOSECONDS) status = look(supply, since, block);
    while (status == SUPPLY_AGAIN) {
        int ready = supply_pipe_wait(&supply->pair.notification_pipe, deadline(supply, since));
        if (ready < 0)
            status = supply_fail(&supply->failure, SUPPLY_ERROR_SYSTEM, "%s: poll failed: %m", supply->pair.name);
        else if (ready == 0)
            status = fail_by_timeout(supply);
        else
            status = drain(supply, block);
    }
    supply->last_wait = supply_clock_now() - since;
    supply->statistics.seconds_waited += (double)supply->last_wait / 1e9;
    return status;
}

static supply_status_t drain_trying(supply_t *supply, supply_block_t *block) {
    supply_status_t status = drain(supply, block);
    if (status != SUPPLY_AGAIN) {
        supply->quiet_since = 0;
        return status;
    }
    const int64_t now = supply_clock_now();
    if (supply->quiet_since == 0) supply->quiet_since = now;
    if (now < deadline(supply, supply->quiet_since)) return SUPPLY_AGAIN;
    supply->quiet_since = 0;
    return fail_by_timeout(supply);
}

supply_status_t supply_receive(supply_t *supply, supply_block_t *block, bool wait) {
    if (supply->broken.status != SUPPLY_OK) {
        supply->failure = supply->broken;
        return supply->broken.status;
    }
    supply->failure.status = SUPPLY_OK;
    if (supply->at_end_of_data) return SUPPLY_END_OF_DATA;
    if (supply->at_end_of_epoch) supply_pair_pass(&supply->pair);
    supply->at_end_of_epoch = false;
    supply_status_t status;
    if (wait) {
        supply->quiet_since = 0;
        status = drain_waiting(supply, block);
    } else {
        status = drain_trying(supply, block);
    }
    if (status < 0 && status != SUPPLY_ERROR_TIMEOUT && status != SUPPLY_ERROR_ALL_HELD)
        supply->broken = supply->failure;
    return status;
}

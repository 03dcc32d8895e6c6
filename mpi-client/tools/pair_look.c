#include "pair_look.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file_lock.h"
#include "layout.h"
#include "users.h"

/* Both sides go on while they are looked at. What does not hold still for one of so many looks is not known. */
#define TRIES 20

static const char *const state_names[] = {"absent",    "no access", "invalid", "stale", "opening", "open",
                                          "supplying", "paused",    "ending",  "ended", "failed"};

const char *pair_state_name(enum pair_state state) { return state_names[state]; }

int pair_open(const char *path) {
    const int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0) return -1;
    struct stat entry;
    int fd = -1, error = EINVAL;
    if (fstat(place, &entry) != 0)
        error = errno;
    else if (S_ISREG(entry.st_mode)) {
        char same[64];
        snprintf(same, sizeof same, "/proc/self/fd/%d", place);
        fd = open(same, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        error = errno;
    }
    close(place);
    errno = error;
    return fd;
}

/* There is nothing more to see: false. */
__attribute__((format(printf, 3, 4))) static bool conclude(struct pair_look *look, enum pair_state state,
                                                           const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    look->state = state;
    vsnprintf(look->text, sizeof look->text, format, arguments);
    va_end(arguments);
    return false;
}

static void conclude_without_file(struct pair_look *look, const char *path) {
    struct stat entry;
    char owner[USER_TEXT_BYTES];
    if (errno == ENOENT)
        conclude(look, PAIR_ABSENT, "%s", "");
    else if (errno == EINVAL)
        conclude(look, PAIR_INVALID, "is not a regular file");
    else if (errno == EACCES && lstat(path, &entry) == 0)
        conclude(look, PAIR_NO_ACCESS, "belongs to %s (mode %04o): look as that user, or as root",
                 supply_user_text(entry.st_uid, owner), entry.st_mode & 07777);
    else if (errno == EACCES)
        conclude(look, PAIR_NO_ACCESS, "its folder is not open to this user: look as the rank's user, or as root");
    else
        conclude(look, PAIR_INVALID, "can not be read: %m");
}

/* Whether the fields that never change are in order. */
static bool check_header(struct pair_look *look, const struct mapped_file_header *header, off_t file_bytes) {
    const uint32_t major = header->version >> 16, minor = header->version & 0xffff;
    if (major != VERSION_MAJOR)
        return conclude(look, PAIR_INVALID, "its rank speaks contract %u.%u, and this tool %d.%d", major, minor,
                        VERSION_MAJOR, VERSION_MINOR);
    if (header->byte_order != BYTE_ORDER_MARK)
        return conclude(look, PAIR_INVALID, "byte_order is 0x%08x", header->byte_order);
    if (header->ring_offset != RING_OFFSET)
        return conclude(look, PAIR_INVALID, "ring_offset is %" PRIu64, header->ring_offset);
    if (header->block_bytes == 0 || header->block_bytes > BLOCK_BYTES_MAX ||
        header->block_bytes % BLOCK_BYTES_UNIT != 0)
        return conclude(look, PAIR_INVALID, "block_bytes is %" PRIu64, header->block_bytes);
    if (header->block_count < BLOCK_COUNT_MIN)
        return conclude(look, PAIR_INVALID, "block_count is %" PRIu32, header->block_count);
    if (header->file_bytes != RING_OFFSET + header->block_count * header->block_bytes ||
        (off_t)header->file_bytes > file_bytes)
        return conclude(look, PAIR_INVALID, "file_bytes is %" PRIu64 ", and the file has %jd", header->file_bytes,
                        (intmax_t)file_bytes);
    return true;
}

static bool ring_is_in_order(const struct mapped_file_header *header) {
    return header->released <= header->published && header->published - header->released <= header->block_count;
}

static bool read_slot(int fd, const struct mapped_file_header *header, uint64_t number, struct block_header *block) {
    const uint64_t offset = RING_OFFSET + number % header->block_count * header->block_bytes;
    return pread(fd, block, sizeof *block, (off_t)offset) == sizeof *block;
}

/* A block that stays and was notified again under a number: its own header, with what the record of the number says. */
static bool read_again(int fd, const struct mapped_file_header *header, uint64_t sequence, struct block_header *block) {
    const struct block_header record = *block;
    if (!read_slot(fd, header, record.replay_block, block)) return false;
    if (block->notification.sequence != record.replay_block && block->notification.sequence != sequence) return false;
    block->notification.epoch = record.replay_epoch;
    block->elements_before = record.replay_elements_before;
    block->bytes_before = record.replay_bytes_before;
    return true;
}

static bool read_block(int fd, const struct mapped_file_header *header, uint64_t sequence, struct block_header *block) {
    if (!read_slot(fd, header, sequence, block)) return false;
    if (sequence > 0 && block->replay_sequence == sequence) return read_again(fd, header, sequence, block);
    return block->notification.sequence == sequence;
}

/* The last published block's header. False: it is not that block's, or was written over meanwhile. */
static bool read_last_block(int fd, const struct mapped_file_header *header, struct block_header *block) {
    struct mapped_file_header after;
    return read_block(fd, header, header->published - 1, block) &&
           block->notification.generation == header->generation && pread(fd, &after, sizeof after, 0) == sizeof after &&
           after.generation == header->generation && after.published >= header->published &&
           after.published - header->published < header->block_count - 1;
}

static void learn_progress(struct pair_look *look, const struct block_header *block) {
    const bool counts = block->notification.kind == NOTIFICATION_BLOCK;
    look->has_progress = true;
    look->epoch = block->notification.epoch;
    look->has_partition = counts;
    look->partition = block->notification.partition;
    look->elements = block->elements_before + (counts ? block->notification.element_count : 0);
    look->bytes = block->bytes_before + (counts ? block->notification.size : 0);
}

static void learn_header(struct pair_look *look, const struct mapped_file_header *header) {
    look->has_header = true;
    look->generation = header->generation;
    look->rank = header->rank;
    look->local_rank = header->local_rank;
    look->rank_pid = header->rank_pid;
    look->task_pid = header->task_pid;
    look->task_attempt = header->task_attempt;
    look->block_bytes = header->block_bytes;
    look->block_count = header->block_count;
    look->published = header->published;
    look->released = header->released;
}

/* A header and its last block that belong together, as far as they hold still. False: concluded without. */
static bool read_header(int fd, struct pair_look *look, struct mapped_file_header *header, uint32_t *last_kind) {
    struct stat entry;
    *last_kind = 0;
    for (int i = 0; i < TRIES; i++) {
        const ssize_t got = pread(fd, header, sizeof *header, 0);
        if (got < 0 || fstat(fd, &entry) != 0) return conclude(look, PAIR_INVALID, "can not be read: %m");
        if (got > 0 && (got < (ssize_t)sizeof header->magic || memcmp(header->magic, MAGIC, sizeof header->magic) != 0))
            return conclude(look, PAIR_INVALID, "was not made by a rank");
        if (got < (ssize_t)sizeof *header || header->version == 0) return conclude(look, PAIR_OPENING, "%s", "");
        if (!check_header(look, header, entry.st_size)) return false;
        if (!ring_is_in_order(header)) continue;
        learn_header(look, header);
        if (header->published == 0) return look->has_progress = true;
        struct block_header block;
        if (!read_last_block(fd, header, &block)) continue;
        learn_progress(look, &block);
        *last_kind = block.notification.kind;
        return true;
    }
    if (look->has_header) return true;
    return conclude(look, PAIR_INVALID,
                    "published is %" PRIu64 " and released %" PRIu64 ", in a ring of %" PRIu32 " blocks",
                    header->published, header->released, header->block_count);
}

static enum pair_state state_of(const struct mapped_file_header *header, bool attached, uint32_t last_kind) {
    if (header->task_failure[0] != '\0' || header->rank_failure[0] != '\0') return PAIR_FAILED;
    if (header->end_seen != 0) return PAIR_ENDED;
    if (last_kind == NOTIFICATION_END_OF_DATA) return PAIR_ENDING;
    if (attached) return PAIR_SUPPLYING;
    return header->task_pid == 0 ? PAIR_OPEN : PAIR_PAUSED;
}

static enum pair_waiting waiting_of(const struct pair_look *look) {
    if (look->state < PAIR_OPEN || look->state > PAIR_ENDING) return NOBODY_WAITS;
    if (look->published == look->released) return RANK_WAITS;
    if (look->state == PAIR_ENDING ||
        (look->state == PAIR_SUPPLYING && look->published - look->released == look->block_count))
        return TASK_WAITS;
    return NOBODY_WAITS;
}

static void quote(struct pair_look *look, const struct mapped_file_header *header) {
    const bool by_task = header->task_failure[0] != '\0';
    const char *field = by_task ? header->task_failure : header->rank_failure;
    if (*field == '\0') return;
    char words[sizeof header->task_failure];
    supply_copy_line(words, sizeof words, field, sizeof header->task_failure);
    snprintf(look->text, sizeof look->text, "%s gave up: %s", by_task ? "Spark" : "the rank", words);
}

/* Every write to a pipe leaves its time there: a notification, or a request. */
static double seconds_since_write(const struct pair_files *files) {
    const char *const pipes[] = {files->request_pipe, files->notification_pipe};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double shortest = -1;
    for (int i = 0; i < 2; i++) {
        struct stat entry;
        if (pipes[i] == NULL || lstat(pipes[i], &entry) != 0 || !S_ISFIFO(entry.st_mode)) return -1;
        double seconds =
            (double)(now.tv_sec - entry.st_mtim.tv_sec) + (double)(now.tv_nsec - entry.st_mtim.tv_nsec) / 1e9;
        if (seconds < 0) seconds = 0;
        if (shortest < 0 || seconds < shortest) shortest = seconds;
    }
    return shortest;
}

void pair_look(struct pair_look *look, const struct pair_files *files) {
    *look = (struct pair_look){.time = supply_clock_now(), .rank = -1, .local_rank = -1, .quiet_seconds = -1};
    const int fd = pair_open(files->mapped_file);
    if (fd < 0) {
        conclude_without_file(look, files->mapped_file);
        return;
    }
    struct mapped_file_header header;
    uint32_t last_kind;
    if (read_header(fd, look, &header, &last_kind)) {
        look->state = state_of(&header, supply_file_is_locked(fd, F_WRLCK, TASK_LOCK_BYTE), last_kind);
        quote(look, &header);
    }
    if (look->state != PAIR_INVALID && !supply_file_is_locked(fd, F_RDLCK, RANK_LOCK_BYTE)) look->state = PAIR_STALE;
    look->waiting = waiting_of(look);
    if (look->has_header) look->quiet_seconds = seconds_since_write(files);
    close(fd);
}

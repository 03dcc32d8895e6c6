/**
 * Takes a snapshot of a pair by pread() alone, and compares two of them. It trusts nothing that it reads: neither the
 * rank nor the task waits for an observer.
 */
#include "pair_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "files/folder.h"
#include "layout.h"

/* Both sides change the pair while it is read. After this many inconsistent reads the value is not known. */
#define TRIES 20

static const char *const state_names[] = {"absent",    "no access", "invalid", "stale", "opening", "open",
                                          "supplying", "paused",    "ending",  "ended", "failed"};

const char *pair_state_name(enum pair_state state) { return state_names[state]; }

/* Sets the final state. Returns false: nothing more can be read. */
__attribute__((format(printf, 3, 4))) static bool conclude(struct pair_snapshot *snapshot, enum pair_state state,
                                                           const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    snapshot->state = state;
    vsnprintf(snapshot->text, sizeof snapshot->text, format, arguments);
    va_end(arguments);
    return false;
}

static void conclude_without_file(struct pair_snapshot *snapshot, const char *path) {
    struct stat entry;
    char owner[USER_TEXT_BYTES];
    if (errno == ENOENT)
        conclude(snapshot, PAIR_ABSENT, "%s", "");
    else if (errno == EINVAL)
        conclude(snapshot, PAIR_INVALID, "is not a regular file");
    else if (errno == EACCES && lstat(path, &entry) == 0)
        conclude(snapshot, PAIR_NO_ACCESS, "belongs to %s (mode %04o): run as that user, or as root",
                 supply__user_text(entry.st_uid, owner), entry.st_mode & 07777);
    else if (errno == EACCES)
        conclude(snapshot, PAIR_NO_ACCESS, "its folder is not open to this user: run as the rank's user, or as root");
    else
        conclude(snapshot, PAIR_INVALID, "cannot be read: %m");
}

/* Checks the fields that never change. */
static bool check_header(struct pair_snapshot *snapshot, const struct mapped_file_header *header, off_t file_bytes) {
    if (header->version != VERSION)
        return conclude(snapshot, PAIR_INVALID, "its rank speaks contract %u.%u, and this tool %s",
                        header->version >> 16, header->version & 0xffff, supply_contract_version());
    if (header->byte_order != BYTE_ORDER_MARK)
        return conclude(snapshot, PAIR_INVALID, "byte_order is 0x%08x", header->byte_order);
    if (header->ring_offset != RING_OFFSET)
        return conclude(snapshot, PAIR_INVALID, "ring_offset is %" PRIu64, header->ring_offset);
    if (header->block_bytes == 0 || header->block_bytes > BLOCK_BYTES_MAX ||
        header->block_bytes % BLOCK_BYTES_UNIT != 0)
        return conclude(snapshot, PAIR_INVALID, "block_bytes is %" PRIu64, header->block_bytes);
    if (header->block_count < BLOCK_COUNT_MIN)
        return conclude(snapshot, PAIR_INVALID, "block_count is %" PRIu32, header->block_count);
    const off_t own_bytes = header->reader > 0 ? RING_OFFSET : (off_t)header->file_bytes;
    if (header->file_bytes != RING_OFFSET + header->block_count * header->block_bytes || own_bytes > file_bytes)
        return conclude(snapshot, PAIR_INVALID, "file_bytes is %" PRIu64 ", and the file has %jd", header->file_bytes,
                        (intmax_t)file_bytes);
    return true;
}

static bool is_ring_valid(const struct mapped_file_header *header) {
    return header->released <= header->published && header->published - header->released <= header->block_count;
}

static bool read_slot(int fd, const struct mapped_file_header *header, uint64_t number, struct block_header *block) {
    const uint64_t offset = RING_OFFSET + number % header->block_count * header->block_bytes;
    return pread(fd, block, sizeof *block, (off_t)offset) == sizeof *block;
}

/* Reads the header of the last published block. False: it belongs to another block, or was overwritten meanwhile. */
static bool read_last_block(int fd, const struct mapped_file_header *header, struct block_header *block) {
    struct mapped_file_header after;
    return read_slot(fd, header, header->published - 1, block) &&
           block->notification.sequence == header->published - 1 &&
           block->notification.generation == header->generation && pread(fd, &after, sizeof after, 0) == sizeof after &&
           after.generation == header->generation && after.published >= header->published &&
           after.published - header->published < header->block_count - 1;
}

static void set_progress(struct pair_snapshot *snapshot, const struct block_header *block) {
    const bool has_elements = block->notification.kind == NOTIFICATION_BLOCK;
    snapshot->has_progress = true;
    snapshot->epoch = block->notification.epoch;
    snapshot->has_partition = has_elements;
    snapshot->partition = block->notification.partition;
    snapshot->elements = block->elements_before + (has_elements ? block->notification.element_count : 0);
    snapshot->referenced_bytes = has_elements ? block->referenced_bytes : 0;
    snapshot->in_resident_file = has_elements && block->notification.file != 0;
    snapshot->last_bytes = has_elements ? block->notification.size + block->referenced_bytes : 0;
    snapshot->bytes = block->bytes_before + snapshot->last_bytes;
}

static void set_header(struct pair_snapshot *snapshot, const struct mapped_file_header *header) {
    snapshot->has_header = true;
    snapshot->generation = header->generation;
    snapshot->rank = header->rank;
    snapshot->local_rank = header->local_rank;
    snapshot->rank_pid = header->rank_pid;
    snapshot->task_pid = header->task_pid;
    snapshot->task_attempt = header->task_attempt;
    snapshot->block_bytes = header->block_bytes;
    snapshot->block_count = header->block_count;
    snapshot->exchange = header->exchange;
    snapshot->exchange_fraction = header->exchange_fraction;
    snapshot->exchange_totals = header->exchange_totals;
    snapshot->published = header->published;
    snapshot->released = header->released;
}

/* A second read: in the first one, counts_known may be newer than the counts, which lie in front of it. */
static void snapshot_read_counts(int fd, struct pair_snapshot *snapshot) {
    struct mapped_file_header header;
    snapshot->has_counts = pread(fd, &header, sizeof header, 0) == sizeof header;
    if (!snapshot->has_counts) return;
    snapshot->epoch_elements = header.epoch_elements;
    snapshot->epoch_steps = header.epoch_steps;
}

/* Reads a header and its last block that belong together. False: the state is final without them. */
static bool read_header(int fd, struct pair_snapshot *snapshot, struct mapped_file_header *header,
                        uint32_t *last_kind) {
    struct stat entry;
    *last_kind = 0;
    for (int i = 0; i < TRIES; i++) {
        const ssize_t got = pread(fd, header, sizeof *header, 0);
        if (got < 0 || fstat(fd, &entry) != 0) return conclude(snapshot, PAIR_INVALID, "cannot be read: %m");
        if (got > 0 && (got < (ssize_t)sizeof header->magic || memcmp(header->magic, MAGIC, sizeof header->magic) != 0))
            return conclude(snapshot, PAIR_INVALID, "was not made by a rank");
        if (got < (ssize_t)sizeof *header || header->version == 0) return conclude(snapshot, PAIR_OPENING, "%s", "");
        if (!check_header(snapshot, header, entry.st_size)) return false;
        if (!is_ring_valid(header)) continue;
        set_header(snapshot, header);
        if (header->published == 0) return snapshot->has_progress = true;
        struct block_header block;
        if (!read_last_block(fd, header, &block)) continue;
        set_progress(snapshot, &block);
        *last_kind = block.notification.kind;
        return true;
    }
    if (snapshot->has_header) return true;
    return conclude(snapshot, PAIR_INVALID,
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

static enum pair_waiting waiting_of(const struct pair_snapshot *snapshot) {
    if (snapshot->state < PAIR_OPEN || snapshot->state > PAIR_ENDING) return NOBODY_WAITS;
    if (snapshot->published == snapshot->released) return RANK_WAITS;
    if (snapshot->state == PAIR_ENDING ||
        (snapshot->state == PAIR_SUPPLYING && snapshot->published - snapshot->released == snapshot->block_count))
        return TASK_WAITS;
    return NOBODY_WAITS;
}

static void set_failure_text(struct pair_snapshot *snapshot, const struct mapped_file_header *header) {
    const bool by_task = header->task_failure[0] != '\0';
    const char *field = by_task ? header->task_failure : header->rank_failure;
    if (*field == '\0') return;
    char text[sizeof header->task_failure];
    supply__copy_line(text, sizeof text, field, sizeof header->task_failure);
    snprintf(snapshot->text, sizeof snapshot->text, "%s failed: %s", by_task ? "Spark" : "the rank", text);
}

/* Each notification and each request sets the modification time of its pipe. */
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

/* Takes a snapshot of a pair. */
static void pair_snapshot_take(struct pair_snapshot *snapshot, const struct pair_files *files) {
    *snapshot = (struct pair_snapshot){.time = supply__clock_now(), .rank = -1, .local_rank = -1, .quiet_seconds = -1};
    const int fd = supply__open_regular(AT_FDCWD, files->mapped_file);
    if (fd < 0) {
        conclude_without_file(snapshot, files->mapped_file);
        return;
    }
    struct mapped_file_header header;
    uint32_t last_kind;
    if (read_header(fd, snapshot, &header, &last_kind)) {
        snapshot->state = state_of(&header, supply__file_is_locked(fd, F_WRLCK, TASK_LOCK_BYTE), last_kind);
        set_failure_text(snapshot, &header);
        if (header.counts_known == 1) snapshot_read_counts(fd, snapshot);
    }
    if (snapshot->state != PAIR_INVALID && !supply__file_is_locked(fd, F_RDLCK, RANK_LOCK_BYTE))
        snapshot->state = PAIR_STALE;
    snapshot->waiting = waiting_of(snapshot);
    if (snapshot->has_header) snapshot->quiet_seconds = seconds_since_write(files);
    close(fd);
}

static bool is_same_pair(const struct pair_snapshot *one, const struct pair_snapshot *other) {
    return one->has_header && other->has_header && one->generation == other->generation;
}

static void set_rates(struct pair_progress *progress, const struct pair_snapshot *before) {
    const struct pair_snapshot *now = &progress->snapshot;
    const double seconds = (double)(now->time - before->time) / 1e9;
    if (!now->has_progress || !before->has_progress || seconds <= 0) return;
    /* Another process writes these numbers: they may decrease. */
    if (now->elements < before->elements || now->bytes < before->bytes) return;
    progress->elements_per_second = (double)(now->elements - before->elements) / seconds;
    progress->bytes_per_second = (double)(now->bytes - before->bytes) / seconds;
}

/*
 * Two upper bounds: the time of the last write to the pipes, and the earlier snapshots. The pipes give a bound at the
 * first snapshot. But a busy task need not read its request pipe; once that is full, releases leave no time there.
 */
static void set_waiting(struct pair_progress *progress) {
    const struct pair_snapshot *now = &progress->snapshot;
    if (now->waiting == NOBODY_WAITS) return;
    progress->waiting_seconds = now->quiet_seconds;
    if (progress->changed_after == 0) return;
    const double seen = (double)(now->time - progress->changed_after) / 1e9;
    if (progress->waiting_seconds < 0 || seen < progress->waiting_seconds) progress->waiting_seconds = seen;
}

void pair_progress(struct pair_progress *progress, const struct pair_files *files, const struct pair_progress *before) {
    *progress = (struct pair_progress){.elements_per_second = -1, .bytes_per_second = -1, .waiting_seconds = -1};
    pair_snapshot_take(&progress->snapshot, files);
    const struct pair_snapshot *now = &progress->snapshot;
    if (before != NULL && is_same_pair(now, &before->snapshot)) {
        const bool changed = now->published != before->snapshot.published || now->released != before->snapshot.released;
        progress->changed_after = changed ? before->snapshot.time : before->changed_after;
        set_rates(progress, &before->snapshot);
    }
    set_waiting(progress);
}

/*
 * Lists pairs, from config files or from a folder. A file in a folder is taken for a pair by its first bytes or its
 * name.
 */

/* Levels below the folder: each run has a folder of its own, and a user may keep several runs in one folder. */
#define DEPTH 2

#define MAPPED_SUFFIX ".mapped"

static void free_pair(struct pair_files *pair) {
    free(pair->mapped_file);
    free(pair->request_pipe);
    free(pair->notification_pipe);
}

static bool pair_list_append(struct pair_list *list, struct pair_files pair) {
    struct pair_files *grown = reallocarray(list->pairs, list->count + 1, sizeof *grown);
    if (grown != NULL) list->pairs = grown;
    if (grown == NULL || pair.mapped_file == NULL) {
        free_pair(&pair);
        return false;
    }
    list->pairs[list->count++] = pair;
    return true;
}

bool pair_list_of_config(struct pair_list *list, const struct config_lines *lines, int local_rank) {
    *list = (struct pair_list){0};
    for (size_t i = 0; i < lines->count; i++) {
        if (local_rank >= 0 && (size_t)local_rank != i) continue;
        const struct config_line *line = &lines->lines[i];
        if (!pair_list_append(list, (struct pair_files){(int)i, strdup(line->mapped_file.path),
                                                        strdup(line->request_pipe.path),
                                                        strdup(line->notification_pipe.path)}))
            return false;
    }
    return true;
}

static bool has_suffix(const char *name) {
    const size_t length = strlen(name), suffix = strlen(MAPPED_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, MAPPED_SUFFIX) == 0;
}

static bool begins_as_mapped_file(const char *path) {
    char magic[sizeof MAGIC - 1];
    const int fd = supply__open_regular(AT_FDCWD, path);
    if (fd < 0) return false;
    const bool read = pread(fd, magic, sizeof magic, 0) == sizeof magic;
    close(fd);
    return read && memcmp(magic, MAGIC, sizeof magic) == 0;
}

static bool append_found(struct pair_list *list, const char *path) {
    struct pair_files pair = {.local_rank = -1, .mapped_file = strdup(path)};
    if (has_suffix(path)) {
        const int length = (int)(strlen(path) - strlen(MAPPED_SUFFIX));
        if (asprintf(&pair.request_pipe, "%.*s.request", length, path) < 0) pair.request_pipe = NULL;
        if (asprintf(&pair.notification_pipe, "%.*s.notification", length, path) < 0) pair.notification_pipe = NULL;
    }
    return pair_list_append(list, pair);
}

static bool visit(struct pair_list *list, FTS *tree, FTSENT *entry, void denied(const char *folder)) {
    switch (entry->fts_info) {
        case FTS_D:
            if (entry->fts_level > DEPTH) fts_set(tree, entry, FTS_SKIP);
            return true;
        case FTS_DNR:
            if (denied != NULL) denied(entry->fts_path);
            return true;
        case FTS_F:
            if (!has_suffix(entry->fts_name) && !begins_as_mapped_file(entry->fts_path)) return true;
            return append_found(list, entry->fts_path);
        case FTS_ERR:
            errno = entry->fts_errno;
            return false;
        default:
            return true;
    }
}

static int by_name(const FTSENT **one, const FTSENT **other) {
    return strverscmp((*one)->fts_name, (*other)->fts_name);
}

bool pair_list_find(struct pair_list *list, const char *folder, void denied(const char *folder)) {
    *list = (struct pair_list){0};
    if (access(folder, F_OK) != 0) return false;
    char *const roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_XDEV, by_name);
    if (tree == NULL) return false;
    bool listed = true;
    FTSENT *entry = NULL;
    while (listed && (errno = 0, entry = fts_read(tree)) != NULL) listed = visit(list, tree, entry, denied);
    const int error = errno;
    fts_close(tree);
    errno = error;
    return entry == NULL && error == 0;
}

void pair_list_free(struct pair_list *list) {
    for (size_t i = 0; i < list->count; i++) free_pair(&list->pairs[i]);
    free(list->pairs);
    *list = (struct pair_list){0};
}

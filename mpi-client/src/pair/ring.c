/**
 * R3: checks offset, size and copy of a notification against the ring. The task may write to the mapped file meanwhile:
 * each field is read once. It runs in the thread that receives, without the lock.
 */
#include "pair/ring.h"

#include <stddef.h>
#include <string.h>

#define NOTIFICATION_FIELD(field)                                                                                      \
    {#field, offsetof(struct notification, field), sizeof((struct notification *)0)->field}

static const struct {
    const char *name;
    size_t offset;
    size_t bytes;
} notification_fields[] = {
    NOTIFICATION_FIELD(generation),    NOTIFICATION_FIELD(kind),     NOTIFICATION_FIELD(element_count),
    NOTIFICATION_FIELD(sequence),      NOTIFICATION_FIELD(epoch),    NOTIFICATION_FIELD(partition),
    NOTIFICATION_FIELD(first_element), NOTIFICATION_FIELD(offset),   NOTIFICATION_FIELD(size),
    NOTIFICATION_FIELD(file),          NOTIFICATION_FIELD(reserved),
};

supply_status_t supply__notification_check_copy(const struct notification *notification,
                                                const struct notification *copy, struct failure *failure) {
    for (size_t i = 0; i < sizeof notification_fields / sizeof *notification_fields; i++) {
        size_t offset = notification_fields[i].offset;
        if (memcmp((const uint8_t *)notification + offset, (const uint8_t *)copy + offset,
                   notification_fields[i].bytes) != 0)
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                "block_header.notification.%s is not that of the notification",
                                notification_fields[i].name);
    }
    return SUPPLY_OK;
}

/* The resident blocks (PROTOCOL.md, "Resident epochs"). */
struct resident {
    uint64_t first;
    uint64_t count;
};

static struct resident resident_blocks(const struct pair *pair) {
    const struct mapped_file_header *header = supply__mapped_header(&pair->mapped_file);
    /* The task stores the count last, with release: a count that is not 0 belongs to a first that is read later. */
    const uint64_t count = __atomic_load_n(&header->resident_count, __ATOMIC_ACQUIRE);
    return (struct resident){.first = __atomic_load_n(&header->resident_first, __ATOMIC_RELAXED), .count = count};
}

static bool is_after(const struct resident *resident, uint64_t sequence) {
    return resident->count > 0 && sequence >= resident->first && sequence - resident->first >= resident->count;
}

/* Whether the notification replays a resident block, which lies in the slot of another number. */
static bool is_replay(const struct resident *resident, const struct notification *notification) {
    return is_after(resident, notification->sequence) && notification->kind != NOTIFICATION_END_OF_DATA;
}

static supply_status_t check_offset(const struct settings *settings, const struct resident *resident,
                                    const struct notification *notification, struct failure *failure) {
    if (is_replay(resident, notification)) {
        const uint64_t in_ring = notification->offset - RING_OFFSET;
        if (notification->offset < RING_OFFSET || in_ring % settings->block_bytes != 0 ||
            in_ring / settings->block_bytes >= settings->block_count)
            return supply__fail_by_number(failure, "notification.offset", notification->offset, "that of a slot, from",
                                          RING_OFFSET);
        return SUPPLY_OK;
    }
    const uint64_t number =
        is_after(resident, notification->sequence) ? resident->first + resident->count : notification->sequence;
    const uint64_t offset = supply__ring_slot_offset(settings, number);
    if (notification->offset != offset)
        return supply__fail_by_number(failure, "notification.offset", notification->offset, "that of its slot,",
                                      offset);
    return SUPPLY_OK;
}

/* A resident block keeps the notification of its first time, with another sequence number and an earlier epoch. */
static supply_status_t check_first_copy(const struct pair *pair, const struct resident *resident,
                                        const struct notification *notification, const struct notification *copy,
                                        struct failure *failure) {
    if (copy->sequence - resident->first >= resident->count)
        return supply__fail_by_number(failure, "block_header.notification.sequence", copy->sequence,
                                      "that of a resident block, from", resident->first);
    if (notification->offset != supply__ring_slot_offset(&pair->settings, copy->sequence))
        return supply__fail_by_number(failure, "notification.offset", notification->offset,
                                      "that of the slot of the resident block,",
                                      supply__ring_slot_offset(&pair->settings, copy->sequence));
    if (copy->epoch >= notification->epoch)
        return supply__fail_by_number(failure, "notification.epoch", notification->epoch,
                                      "after the block's first one,", copy->epoch);
    struct notification first = *notification;
    first.sequence = copy->sequence;
    first.epoch = copy->epoch;
    return supply__notification_check_copy(&first, copy, failure);
}

/* The copy that the task's next attempt reads; the block lies in a file. */
static supply_status_t check_slot_of_file_block(const struct pair *pair, const struct notification *notification,
                                                struct failure *failure) {
    struct notification copy;
    memcpy(&copy, pair->mapped_file.address + supply__ring_slot_offset(&pair->settings, notification->sequence),
           sizeof copy);
    return supply__notification_check_copy(notification, &copy, failure);
}

supply_status_t supply__ring_block_check(const struct pair *pair, const struct notification *notification,
                                         struct failure *failure) {
    const struct settings *settings = &pair->settings;
    const struct resident resident = resident_blocks(pair);
    if (resident.count >= settings->block_count)
        return supply__fail_by_number(failure, "resident_count", resident.count, "below block_count,",
                                      settings->block_count);
    if (notification->file != 0) return check_slot_of_file_block(pair, notification, failure);
    const supply_status_t status = check_offset(settings, &resident, notification, failure);
    if (status != SUPPLY_OK) return status;
    if (notification->size > settings->block_bytes)
        return supply__fail_by_number(failure, "notification.size", notification->size, "at most block_bytes,",
                                      settings->block_bytes);
    struct notification copy;
    memcpy(&copy, pair->mapped_file.address + notification->offset, sizeof copy);
    return is_replay(&resident, notification) ? check_first_copy(pair, &resident, notification, &copy, failure)
                                              : supply__notification_check_copy(notification, &copy, failure);
}

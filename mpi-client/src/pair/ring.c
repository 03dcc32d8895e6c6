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

supply_status_t supply__ring_block_check(const struct pair *pair, const struct notification *notification,
                                         struct failure *failure) {
    const struct settings *settings = &pair->settings;
    const uint64_t slot = supply__ring_slot_offset(settings, notification->sequence);
    if (notification->file == 0 && notification->offset != slot)
        return supply__fail_by_number(failure, "notification.offset", notification->offset, "that of its slot,", slot);
    if (notification->file == 0 && notification->size > settings->block_bytes)
        return supply__fail_by_number(failure, "notification.size", notification->size, "at most block_bytes,",
                                      settings->block_bytes);
    struct notification copy;
    memcpy(&copy, pair->mapped_file.address + slot, sizeof copy);
    return supply__notification_check_copy(notification, &copy, failure);
}

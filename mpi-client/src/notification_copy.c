#include "notification_copy.h"

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

supply_status_t supply_notification_check_copy(const struct notification *notification, const struct notification *copy,
                                               struct failure *failure) {
    for (size_t i = 0; i < sizeof notification_fields / sizeof *notification_fields; i++) {
        size_t offset = notification_fields[i].offset;
        if (memcmp((const uint8_t *)notification + offset, (const uint8_t *)copy + offset,
                   notification_fields[i].bytes) != 0)
            return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                               "block_header.notification.%s is not that of the notification",
                               notification_fields[i].name);
    }
    return SUPPLY_OK;
}

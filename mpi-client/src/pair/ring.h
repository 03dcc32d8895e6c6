/**
 * The part of R3 for the ring: where a block lies in it, and the copies of notifications at the start of each block.
 */
#ifndef SUPPLY_RING_H
#define SUPPLY_RING_H

#include "base/failure.h"
#include "layout.h"
#include "pair/pair.h"

/** SUPPLY_OK, or _CONTRACT with the first field of the copy that is not that of the notification. */
supply_status_t supply__notification_check_copy(const struct notification *notification,
                                                const struct notification *copy, struct failure *failure);

/** Where the slot of a number begins in the mapped file. */
static inline uint64_t supply__ring_slot_offset(const struct settings *settings, uint64_t sequence) {
    return RING_OFFSET + sequence % settings->block_count * settings->block_bytes;
}

/**
 * Checks the offset and the size of a block in the ring, and its copy of the notification. If the notification has a
 * file, checks only the copy in the slot of its number. SUPPLY_OK, or _CONTRACT with the wrong field.
 */
supply_status_t supply__ring_block_check(const struct pair *pair, const struct notification *notification,
                                         struct failure *failure);

#endif

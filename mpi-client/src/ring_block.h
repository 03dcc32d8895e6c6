/** The part of R3 for the ring: where a block lies in it, and the copies of notifications there. */
#ifndef SUPPLY_RING_BLOCK_H
#define SUPPLY_RING_BLOCK_H

#include "pair.h"

/** Where the slot of a number begins in the mapped file. */
static inline uint64_t supply_ring_slot_offset(const struct settings *settings, uint64_t sequence) {
    return RING_OFFSET + sequence % settings->block_count * settings->block_bytes;
}

/**
 * Checks the offset and the size of a block in the ring, and its copy of the notification. If the notification has a
 * file, checks only the copy in the slot of its number. SUPPLY_OK, or _CONTRACT with the wrong field.
 */
supply_status_t supply_ring_block_check(const struct pair *pair, const struct notification *notification,
                                        struct failure *failure);

#endif

/** The layout of a slot of the handle's ring: where the values of a round arrive, and the block that is made of them.
 */
#pragma once

#include "api/filler.h"
#include "round.h"

/** Bytes of a slot that can receive that many in that many entries. A multiple of BLOCK_BYTES_UNIT. */
size_t exchange_slot_bytes(uint32_t entries, size_t received_bytes);

struct slot_layout {
    struct slot slot;
    size_t *offsets;        /**< of each wire buffer, where its values arrive, from the slot's start */
    uint64_t *value_bytes;  /**< of each column of any length */
    uint64_t *bytes_before; /**< those of the ranks before one, and their elements */
    uint64_t elements_before;
    uint64_t elements;
    size_t end;
};

supply_status_t exchange_slot_init(struct slot_layout *layout, const struct columns *columns, struct failure *failure);
void exchange_slot_free(struct slot_layout *layout);

/** Arranges the buffers of layout->elements and layout->value_bytes. False: the slot is too small. */
bool exchange_slot_arrange(struct slot_layout *layout, const struct columns *columns, const struct slot *slot);

/** Arranges the buffers for what all ranks offer. False: the slot is too small. */
bool exchange_slot_lay_out(struct slot_layout *layout, const struct columns *columns, struct round *round,
                           const struct slot *slot);

/**
 * Makes a block of what has arrived, without its first `skipped` elements, of which there are more. Returns its bytes;
 * 0: a rank has sent other lengths than it has announced.
 */
size_t exchange_slot_finish(const struct slot_layout *layout, const struct columns *columns, uint64_t skipped);

/**
 * Moves the values of a round to their ranks, one wire buffer after the other, and makes a block of what arrives in a
 * slot of the handle's ring.
 */
#ifndef SUPPLY_EXCHANGE_TRANSFER_H
#define SUPPLY_EXCHANGE_TRANSFER_H

#include "api/filler.h"
#include "round.h"

/** Bytes of a slot that can receive that many in that many entries. A multiple of BLOCK_BYTES_UNIT. */
size_t exchange_slot_bytes(uint32_t entries, size_t received_bytes);

struct slot_layout {
    struct slot slot;
    size_t *places;        /**< of each wire buffer, where its values arrive, from the slot's start */
    uint64_t *value_bytes; /**< of each column of any length */
    uint64_t elements;
    size_t end;
};

supply_status_t exchange_slot_init(struct slot_layout *layout, const struct columns *columns, struct failure *failure);
void exchange_slot_free(struct slot_layout *layout);

/** Places the buffers of layout->elements and layout->value_bytes. False: the slot is too small. */
bool exchange_slot_place(struct slot_layout *layout, const struct columns *columns, const struct slot *slot);

/** Places the buffers for what the messages of all ranks announce. False: the slot is too small. */
bool exchange_slot_lay_out(struct slot_layout *layout, const struct columns *columns, struct round *round,
                           const struct slot *slot);

/**
 * Makes a block of what has arrived, without its first `skipped` elements, of which there are more. Returns its bytes;
 * 0: a rank has sent other lengths than it has announced.
 */
size_t exchange_slot_finish(const struct slot_layout *layout, const struct columns *columns, uint64_t skipped);

/* Moves the elements of a round: packs them into a send buffer, and receives into a slot. */

/**
 * The send buffer has the lengths of each column of any length, for all ranks, and then the other buffers of each
 * column, for the others, in the order of ranks.
 */
struct transfer {
    uint8_t *send;
    size_t send_bytes;
    size_t *places; /**< of each wire buffer, in `send` */
    struct part *send_parts;
    struct part *receive_parts;
    uint32_t elements; /**< of the round, for all ranks */
    uint32_t moving;   /**< the wire buffer that is under way */
};

/** A round of a window: what is moved. */
struct cargo {
    const struct columns *columns;
    const struct gathered_window *window;
    const struct destinations *destinations;
    struct round *round;
};

supply_status_t exchange_transfer_init(struct transfer *transfer, uint32_t ranks, size_t window_bytes,
                                       struct failure *failure);
supply_status_t exchange_transfer_set_columns(struct transfer *transfer, const struct columns *columns,
                                              struct failure *failure);

/** While nothing moves: makes the send buffer large enough for that window. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_transfer_reserve(struct transfer *transfer, size_t window_bytes, struct failure *failure);

void exchange_transfer_free(struct transfer *transfer);

/**
 * Packs the lengths, and stores their sums in the messages. False: values have changed since they were gathered, and
 * those of a rank are sent as empty ones.
 */
bool exchange_pack_counts(struct transfer *transfer, const struct cargo *cargo);

/** Packs everything else for the other ranks. False: values have changed since they were gathered. */
bool exchange_pack_others(struct transfer *transfer, const struct cargo *cargo);

/** Copies this rank's own elements to the slot, of one wire buffer. False: as above. */
bool exchange_pack_own(const struct transfer *transfer, const struct cargo *cargo, const struct slot_layout *layout,
                       uint32_t index);

/** Begins to move wire buffer transfer->moving. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_move(struct transfer *transfer, const struct cargo *cargo, const struct slot_layout *layout,
                              struct collective *collective, struct failure *failure);

#endif

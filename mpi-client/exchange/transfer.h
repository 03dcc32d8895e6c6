/** Moves the elements of a round: packs them into a send buffer, and receives into a slot. */
#ifndef SUPPLY_EXCHANGE_TRANSFER_H
#define SUPPLY_EXCHANGE_TRANSFER_H

#include "slot.h"

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

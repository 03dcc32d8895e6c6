/** Moves the values of a round to their ranks: copied into their slots, or by the transport. */
#ifndef SUPPLY_EXCHANGE_TRANSFER_H
#define SUPPLY_EXCHANGE_TRANSFER_H

#include "neighbours.h"

/**
 * The send buffer has the lengths of each column of any length, for all ranks, and then the other buffers of each
 * column, for those that are no neighbours, in the order of ranks.
 */
struct transfer {
    uint8_t *send;
    size_t send_bytes;
    size_t *offsets; /**< of each wire buffer, in `send` */
    struct part *send_parts;
    struct part *receive_parts;
    uint32_t elements; /**< of the round, for all ranks */
    uint32_t moving;   /**< the wire buffer that is under way */
};

/** A round of a window: what is moved. */
struct cargo {
    const struct columns *columns;
    const struct destinations *destinations;
    struct round *round;
    struct neighbours *neighbours;
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

/**
 * Packs everything else for the ranks that are no neighbours. False: values have changed since they were gathered.
 */
bool exchange_pack_others(struct transfer *transfer, const struct cargo *cargo);

/** What exchange_copy() has done. */
enum copied { COPIED, COPIED_CHANGED, COPIED_NOTHING };

/**
 * Copies the elements for a neighbour into its slot. _CHANGED: values have changed since they were gathered. _NOTHING:
 * the neighbour has named a place where they cannot be.
 */
enum copied exchange_copy(const struct transfer *transfer, const struct cargo *cargo, uint32_t rank);

/** Begins to move wire buffer transfer->moving. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_move(struct transfer *transfer, const struct cargo *cargo, const struct slot_layout *layout,
                              struct collective *collective, struct failure *failure);

#endif

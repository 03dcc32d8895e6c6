/**
 * Moves the values of a round to their ranks: copied into the slots of neighbours, or in one message for each pair of
 * ranks, which the receiver copies into its slot.
 */
#ifndef SUPPLY_EXCHANGE_TRANSFER_H
#define SUPPLY_EXCHANGE_TRANSFER_H

#include "neighbours.h"

/** A message is a number, 1: the sender's elements have changed since they were gathered; and then each wire buffer. */
struct transfer {
    int32_t *lengths; /**< of each column of any length, of all elements of the window in the order of destinations */
    size_t lengths_bytes;
    uint8_t *send, *receive;
    struct part *send_parts;
    struct part *receive_parts;
    uint32_t elements; /**< of the window */
};

/** A round of a window: what is moved. */
struct cargo {
    const struct columns *columns;
    const struct destinations *destinations;
    struct round *round;
    struct neighbours *neighbours;
};

/** capacity: bytes of elements that this rank receives in a round. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_transfer_init(struct transfer *transfer, uint32_t ranks, size_t window_bytes, size_t capacity,
                                       struct failure *failure);

/** While nothing is copied: has space for the lengths of that many elements. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_transfer_reserve(struct transfer *transfer, const struct columns *columns, uint32_t elements,
                                          struct failure *failure);

void exchange_transfer_free(struct transfer *transfer);

/**
 * Reads the lengths of a window. False: they are not those that were gathered, for which there is space; all values are
 * empty then.
 */
bool exchange_transfer_begin_window(struct transfer *transfer, const struct cargo *cargo,
                                    const struct gathered_window *window);

/** Adds the bytes of columns to the offers. */
void exchange_transfer_measure(const struct transfer *transfer, const struct cargo *cargo);

/**
 * Copies the elements for a neighbour into its slot. *has_changed: values have, since they were gathered. SUPPLY_AGAIN,
 * _CONTRACT: as exchange_neighbours_find().
 */
supply_status_t exchange_copy(const struct transfer *transfer, const struct cargo *cargo, uint32_t rank,
                              bool *has_changed);

/** Packs the messages. False: values have changed since they were gathered. */
bool exchange_pack_messages(struct transfer *transfer, const struct cargo *cargo);

/** Begins to move the messages. has_changed: what they say. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_move(struct transfer *transfer, const struct cargo *cargo, bool has_changed,
                              struct collective *collective, struct failure *failure);

/** Copies the messages that have arrived into the slot. */
void exchange_unpack_messages(const struct transfer *transfer, const struct cargo *cargo,
                              const struct slot_layout *layout);

#endif

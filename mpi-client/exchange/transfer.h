/**
 * Moves the elements of a round to their ranks, on two paths: copied into the slots of neighbours, or in one message
 * for each pair of ranks, which the receiver copies into its slot.
 */
#pragma once

#include "collective.h"

/** A message is a number, 1: the sender's elements have changed since they were gathered; and then each wire buffer. */
struct transfer {
    const struct columns *columns;
    const struct destinations *destinations;
    struct round *round;
    struct neighbours *neighbours;
    struct collective *collective;
    int32_t *lengths; /**< of each column of any length, of all elements of the window in the order of destinations */
    size_t lengths_bytes;
    uint8_t *send, *receive;
    struct part *send_parts;
    uint64_t *receive_bytes; /**< of the message of each rank */
    uint8_t **targets;       /**< of the message to each rank: where its next wire buffer goes */
    const struct gathered_window *window;
};

/**
 * Allocates; the pointers in front of the lengths are set. capacity: bytes of elements that this rank receives in a
 * round. SUPPLY_OK, or _MEMORY.
 */
supply_status_t exchange_transfer_init(struct transfer *transfer, size_t window_bytes, size_t capacity,
                                       struct failure *failure);

/** While nothing is copied: has space for the lengths of that many elements. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_transfer_reserve(struct transfer *transfer, uint32_t elements, struct failure *failure);

void exchange_transfer_free(struct transfer *transfer);

/** Reads the lengths of a window. If they are not those that were gathered, all values are empty. */
void exchange_transfer_begin_window(struct transfer *transfer, const struct gathered_window *window);

/** Adds the bytes of columns to the offers. */
void exchange_transfer_measure(const struct transfer *transfer);

/*
 * The round moves, in this order. Each of the functions that can return SUPPLY_AGAIN is called until it returns
 * SUPPLY_OK, or a failure. neighbours->changed then says of which ranks elements have changed since they were gathered.
 */

/** Tells neighbours where their elements begin in the slot. */
void exchange_transfer_begin(struct transfer *transfer, struct slot_layout *layout);

/** When all neighbours have said where their elements begin: copies, and packs the messages. */
supply_status_t exchange_transfer_copy(const struct transfer *transfer, struct failure *failure);

/** Begins to move the messages. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_transfer_send(struct transfer *transfer, struct failure *failure);

/** Copies the messages that have arrived into the slot. */
supply_status_t exchange_transfer_receive(const struct transfer *transfer, struct failure *failure);

/** Whether all neighbours have copied theirs. */
supply_status_t exchange_transfer_arrive(const struct transfer *transfer, struct failure *failure);

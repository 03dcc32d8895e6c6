/**
 * Copies the elements of a round into this rank's slot and those of its neighbours, or into messages. Its caller has
 * the exchange's lock.
 */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

supply_status_t exchange_transfer_init(struct transfer *transfer, size_t window_bytes, size_t capacity,
                                       struct failure *failure) {
    const uint32_t ranks = transfer->round->ranks;
    const size_t headers = ranks * sizeof(message_header);
    transfer->send = malloc(window_bytes + headers);
    transfer->receive = malloc(capacity + headers);
    transfer->send_parts = calloc(ranks, sizeof *transfer->send_parts);
    transfer->receive_bytes = calloc(ranks, sizeof *transfer->receive_bytes);
    transfer->targets = (uint8_t **)calloc(ranks, sizeof *transfer->targets);
    if (transfer->send != NULL && transfer->receive != NULL && transfer->send_parts != NULL &&
        transfer->receive_bytes != NULL && transfer->targets != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                        "out of memory for a window of %zu bytes: set window_bytes smaller", window_bytes);
}

supply_status_t exchange_transfer_reserve(struct transfer *transfer, uint32_t elements, struct failure *failure) {
    const size_t bytes = (size_t)elements * transfer->columns->variable_count * sizeof(int32_t);
    if (bytes <= transfer->lengths_bytes) return SUPPLY_OK;
    free(transfer->lengths);
    transfer->lengths = malloc(bytes);
    transfer->lengths_bytes = transfer->lengths ? bytes : 0;
    if (transfer->lengths != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory for the lengths of %u elements", elements);
}

void exchange_transfer_free(struct transfer *transfer) {
    free(transfer->lengths);
    free(transfer->send);
    free(transfer->receive);
    free(transfer->send_parts);
    free(transfer->receive_bytes);
    free((void *)transfer->targets);
    *transfer = (struct transfer){0};
}

/* The lengths of a column of any length, from that element on. NULL: there is no such column. */
static int32_t *transfer_lengths(const struct transfer *transfer, const struct wire_buffer *buffer, uint32_t first) {
    if (transfer->lengths == NULL) return NULL;
    return transfer->lengths + (size_t)buffer->variable * transfer->window->elements + first;
}

/* The rank still does its part of the round, and tells the others: what it sends them is wrong. */
static void transfer_tell_change(const struct transfer *transfer) {
    transfer->neighbours->changed[transfer->neighbours->rank] = true;
}

void exchange_transfer_begin_window(struct transfer *transfer, const struct gathered_window *window) {
    const struct columns *columns = transfer->columns;
    const struct pick all = {.rows = transfer->destinations->rows, .count = window->elements};
    uint64_t bytes = window->elements * columns->fixed_bytes;
    transfer->window = window;
    for (uint32_t i = 0; i < columns->buffer_count && columns->variable_count > 0; i++) {
        if (columns->buffers[i].kind != WIRE_LENGTHS) continue;
        int32_t *lengths = transfer_lengths(transfer, &columns->buffers[i], 0);
        exchange_pack_lengths(&all, columns->buffers[i].column, lengths);
        for (uint32_t k = 0; k < all.count; k++) bytes += (uint32_t)lengths[k];
    }
    if (bytes == window->bytes) return;
    memset(transfer->lengths, 0, (size_t)window->elements * columns->variable_count * sizeof *transfer->lengths);
    transfer_tell_change(transfer);
}

void exchange_transfer_measure(const struct transfer *transfer) {
    const struct columns *columns = transfer->columns;
    struct round *round = transfer->round;
    for (uint32_t i = 0; i < columns->buffer_count && columns->variable_count > 0; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        if (buffer->kind != WIRE_LENGTHS) continue;
        for (uint32_t rank = 0; rank < round->ranks; rank++) {
            const int32_t *lengths = transfer_lengths(transfer, buffer, round->begins[rank]);
            uint64_t bytes = 0;
            for (uint32_t k = 0; k < round->counts[rank]; k++) bytes += (uint32_t)lengths[k];
            exchange_offer(round->offers, round, rank)[OFFER_BYTES + buffer->variable] = bytes;
        }
    }
}

/* Bytes of a wire buffer of what a rank offers. */
static size_t transfer_bytes(const struct transfer *transfer, const struct wire_buffer *buffer, const uint64_t *offer) {
    return exchange_wire_bytes(transfer->columns, buffer, offer[OFFER_ELEMENTS], offer + OFFER_BYTES);
}

/* Where a wire buffer of a rank begins in a slot. */
static uint8_t *transfer_place(const struct transfer *transfer, uint32_t index, const struct slot_layout *layout) {
    return layout->slot.address + layout->offsets[index] +
           exchange_wire_bytes(transfer->columns, &transfer->columns->buffers[index], layout->elements_before,
                               layout->bytes_before);
}

/* Bytes of a message with what is offered. */
static uint64_t transfer_message_bytes(const struct transfer *transfer, const uint64_t *offer) {
    return sizeof(message_header) + exchange_offered_bytes(offer, transfer->columns);
}

/* Messages to the ranks of a node lie one after the other. */
void exchange_transfer_begin(struct transfer *transfer, struct slot_layout *layout) {
    const struct levels *levels = &transfer->collective->levels;
    size_t at = 0;
    exchange_neighbours_place(transfer->neighbours, layout, transfer->round);
    for (uint32_t i = 0; i < levels->ranks; i++) {
        const uint32_t rank = levels->order[i];
        const uint64_t *offer = exchange_offer(transfer->round->offers, transfer->round, rank);
        const bool is_copied = transfer->neighbours->all[rank].ring != NULL;
        transfer->send_parts[rank] =
            (struct part){.offset = at, .bytes = is_copied ? 0 : transfer_message_bytes(transfer, offer)};
        transfer->targets[rank] = transfer->send + at + sizeof(message_header);
        at += transfer->send_parts[rank].bytes;
    }
}

/* Where the next wire buffer for a rank goes. */
static uint8_t *transfer_target(const struct transfer *transfer, uint32_t index, uint32_t rank) {
    const struct neighbours *neighbours = transfer->neighbours;
    const struct neighbour *neighbour = &neighbours->all[rank];
    const uint64_t *offer = exchange_offer(transfer->round->offers, transfer->round, rank);
    uint8_t *target = transfer->targets[rank];
    if (rank == neighbours->rank) return transfer_place(transfer, index, neighbours->own_layout);
    if (neighbour->ring != NULL) return transfer_place(transfer, index, &neighbour->layout);
    transfer->targets[rank] += transfer_bytes(transfer, &transfer->columns->buffers[index], offer);
    return target;
}

/* Column by column, each for all ranks: it is read from memory once. */
static void transfer_pack(const struct transfer *transfer) {
    const struct columns *columns = transfer->columns;
    const struct round *round = transfer->round;
    for (uint32_t i = 0, count; i < columns->buffer_count; i += count) {
        count = exchange_pack_count(columns, i);
        struct ahead ahead = exchange_ahead(columns, transfer->window, i + count);
        for (uint32_t rank = 0; rank < round->ranks; rank++) {
            const uint32_t begin = round->begins[rank];
            const struct pick pick = {.rows = transfer->destinations->rows + begin, .count = round->counts[rank]};
            uint8_t *to[TOGETHER];
            if (pick.count == 0) continue;
            for (uint32_t k = 0; k < count; k++) to[k] = transfer_target(transfer, i + k, rank);
            if (!exchange_pack(columns, &columns->buffers[i], count, &pick,
                               transfer_lengths(transfer, &columns->buffers[i], begin), &ahead, to))
                transfer_tell_change(transfer);
        }
    }
}

supply_status_t exchange_transfer_copy(const struct transfer *transfer, struct failure *failure) {
    bool are_known = true;
    exchange_neighbours_look(transfer->neighbours);
    for (uint32_t rank = 0; rank < transfer->round->ranks; rank++) {
        const supply_status_t status = exchange_neighbours_find(transfer->neighbours, rank, transfer->round);
        if (status == SUPPLY_ERROR_CONTRACT)
            return supply__fail(failure, status,
                                "%s: rank %u has named a place outside of its ring: use the same libsupply_exchange on "
                                "all ranks",
                                transfer->collective->name, rank);
        are_known = are_known && status == SUPPLY_OK;
    }
    TRY(exchange_wait(transfer->collective, are_known, failure));
    transfer_pack(transfer);
    /* Whether elements have changed is known when all are copied. */
    exchange_neighbours_arrive(transfer->neighbours);
    return SUPPLY_OK;
}

supply_status_t exchange_transfer_send(struct transfer *transfer, struct failure *failure) {
    const message_header header = transfer->neighbours->changed[transfer->neighbours->rank];
    for (uint32_t rank = 0; rank < transfer->round->ranks; rank++)
        if (transfer->send_parts[rank].bytes > 0)
            memcpy(transfer->send + transfer->send_parts[rank].offset, &header, sizeof header);
    for (uint32_t rank = 0; rank < transfer->round->ranks; rank++) {
        const uint64_t *offer = exchange_offer(transfer->round->offers_in, transfer->round, rank);
        const bool is_copied = exchange_has_link(transfer->neighbours, rank, transfer->round->rank);
        transfer->receive_bytes[rank] = is_copied ? 0 : transfer_message_bytes(transfer, offer);
    }
    return exchange_move(transfer->collective, transfer->send, transfer->send_parts, transfer->receive,
                         transfer->receive_bytes, failure);
}

/* Copies the message of a rank to its place in the slot. */
static void transfer_unpack(const struct transfer *transfer, uint32_t rank, const uint64_t *offer) {
    const uint8_t *from = exchange_message(transfer->collective, rank, transfer->receive_bytes[rank]);
    message_header header = 1;
    if (from != NULL) memcpy(&header, from, sizeof header);
    if (header != 0) transfer->neighbours->changed[rank] = true;
    if (from == NULL) return;
    from += sizeof header;
    for (uint32_t i = 0; i < transfer->columns->buffer_count; i++) {
        const size_t bytes = transfer_bytes(transfer, &transfer->columns->buffers[i], offer);
        memcpy(transfer_place(transfer, i, transfer->neighbours->own_layout), from, bytes);
        from += bytes;
    }
}

supply_status_t exchange_transfer_receive(const struct transfer *transfer, struct failure *failure) {
    if (transfer->collective->kind == COLLECTIVE_NONE) return SUPPLY_OK;
    TRY(exchange_poll(transfer->collective, failure));
    exchange_neighbours_first(transfer->neighbours);
    for (uint32_t rank = 0; rank < transfer->round->ranks; rank++) {
        const uint64_t *offer = exchange_offer(transfer->round->offers_in, transfer->round, rank);
        if (transfer->receive_bytes[rank] > 0) transfer_unpack(transfer, rank, offer);
        exchange_neighbours_next(transfer->neighbours, offer);
    }
    return SUPPLY_OK;
}

supply_status_t exchange_transfer_arrive(const struct transfer *transfer, struct failure *failure) {
    exchange_neighbours_look(transfer->neighbours);
    return exchange_wait(transfer->collective, exchange_neighbours_have_arrived(transfer->neighbours), failure);
}

/**
 * Copies the elements of a round into this rank's slot and those of its neighbours, or into messages. It runs in the
 * thread that uses the handle, without a lock.
 */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

/* In front of the values of a message. */
typedef uint64_t message_header;

supply_status_t exchange_transfer_init(struct transfer *transfer, uint32_t ranks, size_t window_bytes, size_t capacity,
                                       struct failure *failure) {
    const size_t headers = ranks * sizeof(message_header);
    *transfer = (struct transfer){
        .send = malloc(window_bytes + headers),
        .receive = malloc(capacity + headers),
        .send_parts = calloc(ranks, sizeof *transfer->send_parts),
        .receive_parts = calloc(ranks, sizeof *transfer->receive_parts),
    };
    if (transfer->send != NULL && transfer->receive != NULL && transfer->send_parts != NULL &&
        transfer->receive_parts != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                        "out of memory for a window of %zu bytes: set window_bytes smaller", window_bytes);
}

supply_status_t exchange_transfer_reserve(struct transfer *transfer, const struct columns *columns, uint32_t elements,
                                          struct failure *failure) {
    const size_t bytes = (size_t)elements * columns->variable_count * sizeof(int32_t);
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
    free(transfer->receive_parts);
    *transfer = (struct transfer){0};
}

/* The lengths of a column of any length, from that element on. NULL: there is no such column. */
static int32_t *transfer_lengths(const struct transfer *transfer, const struct wire_buffer *buffer, uint32_t first) {
    if (transfer->lengths == NULL) return NULL;
    return transfer->lengths + (size_t)buffer->variable * transfer->elements + first;
}

bool exchange_transfer_begin_window(struct transfer *transfer, const struct cargo *cargo,
                                    const struct gathered_window *window) {
    const struct columns *columns = cargo->columns;
    const struct pick all = {.rows = cargo->destinations->rows, .count = window->elements};
    uint64_t bytes = window->elements * columns->fixed_bytes;
    transfer->elements = window->elements;
    for (uint32_t i = 0; i < columns->buffer_count && columns->variable_count > 0; i++) {
        if (columns->buffers[i].kind != WIRE_LENGTHS) continue;
        int32_t *lengths = transfer_lengths(transfer, &columns->buffers[i], 0);
        exchange_pack_lengths(&all, columns->buffers[i].column, lengths);
        for (uint32_t k = 0; k < all.count; k++) bytes += (uint32_t)lengths[k];
    }
    if (bytes == window->bytes) return true;
    memset(transfer->lengths, 0, (size_t)window->elements * columns->variable_count * sizeof *transfer->lengths);
    return false;
}

void exchange_transfer_measure(const struct transfer *transfer, const struct cargo *cargo) {
    struct round *round = cargo->round;
    for (uint32_t i = 0; i < cargo->columns->buffer_count && cargo->columns->variable_count > 0; i++) {
        const struct wire_buffer *buffer = &cargo->columns->buffers[i];
        if (buffer->kind != WIRE_LENGTHS) continue;
        for (uint32_t rank = 0; rank < round->ranks; rank++) {
            const int32_t *lengths = transfer_lengths(transfer, buffer, round->begins[rank]);
            uint64_t bytes = 0;
            for (uint32_t k = 0; k < round->counts[rank]; k++) bytes += (uint32_t)lengths[k];
            exchange_offer(round->offers, round, rank)[OFFER_BYTES + buffer->variable] = bytes;
        }
    }
}

/* Packs a wire buffer for that rank. */
static bool transfer_pack(const struct transfer *transfer, const struct cargo *cargo, const struct wire_buffer *buffer,
                          uint32_t rank, uint8_t *to) {
    const struct pick pick = exchange_round_pick(cargo->round, cargo->destinations, rank);
    return exchange_pack(cargo->columns, buffer, &pick, transfer_lengths(transfer, buffer, cargo->round->begins[rank]),
                         to);
}

/* Bytes of a wire buffer of what a rank offers. */
static size_t transfer_bytes(const struct cargo *cargo, const struct wire_buffer *buffer, const uint64_t *offer) {
    return exchange_wire_bytes(cargo->columns, buffer, offer[OFFER_ELEMENTS], offer + OFFER_BYTES);
}

/* Where a wire buffer of a rank begins in a slot. */
static uint8_t *transfer_place(const struct cargo *cargo, uint32_t index, const struct place *place) {
    return place->layout->slot.address + place->layout->offsets[index] +
           exchange_wire_bytes(cargo->columns, &cargo->columns->buffers[index], place->elements, place->value_bytes);
}

supply_status_t exchange_copy(const struct transfer *transfer, const struct cargo *cargo, uint32_t rank,
                              bool *has_changed) {
    struct place place;
    TRY(exchange_neighbours_find(cargo->neighbours, rank, cargo->columns, cargo->round, &place));
    for (uint32_t i = 0; i < cargo->columns->buffer_count && cargo->round->counts[rank] > 0; i++)
        if (!transfer_pack(transfer, cargo, &cargo->columns->buffers[i], rank, transfer_place(cargo, i, &place)))
            *has_changed = true;
    return SUPPLY_OK;
}

static size_t transfer_message_bytes(const struct cargo *cargo, const uint64_t *offer) {
    return sizeof(message_header) + exchange_offered_bytes(offer, cargo->columns);
}

/* Where messages begin and end. is_received: by what others offer to this rank. */
static void transfer_divide(const struct cargo *cargo, bool is_received, struct part *parts) {
    const struct neighbours *neighbours = cargo->neighbours;
    uint64_t *offers = is_received ? cargo->round->offers_in : cargo->round->offers;
    size_t at = 0;
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        const bool is_copied = is_received ? neighbours->links_in[rank] != 0 : neighbours->all[rank].ring != NULL;
        const uint64_t *offer = exchange_offer(offers, cargo->round, rank);
        parts[rank] = (struct part){.offset = at, .bytes = is_copied ? 0 : transfer_message_bytes(cargo, offer)};
        at += parts[rank].bytes;
    }
}

bool exchange_pack_messages(struct transfer *transfer, const struct cargo *cargo) {
    bool is_whole = true;
    transfer_divide(cargo, false, transfer->send_parts);
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        uint8_t *to = transfer->send + transfer->send_parts[rank].offset + sizeof(message_header);
        const uint64_t *offer = exchange_offer(cargo->round->offers, cargo->round, rank);
        for (uint32_t i = 0; i < cargo->columns->buffer_count && transfer->send_parts[rank].bytes > 0; i++) {
            is_whole &= transfer_pack(transfer, cargo, &cargo->columns->buffers[i], rank, to);
            to += transfer_bytes(cargo, &cargo->columns->buffers[i], offer);
        }
    }
    return is_whole;
}

supply_status_t exchange_move(struct transfer *transfer, const struct cargo *cargo, bool has_changed,
                              struct collective *collective, struct failure *failure) {
    const message_header header = has_changed;
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++)
        if (transfer->send_parts[rank].bytes > 0)
            memcpy(transfer->send + transfer->send_parts[rank].offset, &header, sizeof header);
    transfer_divide(cargo, true, transfer->receive_parts);
    return exchange_alltoallv(collective, transfer->send, transfer->send_parts, transfer->receive,
                              transfer->receive_parts, failure);
}

void exchange_unpack_messages(const struct transfer *transfer, const struct cargo *cargo,
                              const struct slot_layout *layout) {
    const struct columns *columns = cargo->columns;
    struct place place = exchange_neighbours_first(cargo->neighbours, columns, layout);
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        const uint8_t *from = transfer->receive + transfer->receive_parts[rank].offset;
        const uint64_t *offer = exchange_offer(cargo->round->offers_in, cargo->round, rank);
        if (transfer->receive_parts[rank].bytes > 0) {
            message_header header;
            memcpy(&header, from, sizeof header);
            from += sizeof header;
            if (header != 0) cargo->neighbours->changed[rank] = true;
            for (uint32_t i = 0; i < columns->buffer_count; i++) {
                const size_t bytes = transfer_bytes(cargo, &columns->buffers[i], offer);
                memcpy(transfer_place(cargo, i, &place), from, bytes);
                from += bytes;
            }
        }
        exchange_neighbours_next(cargo->neighbours, columns, offer, &place);
    }
}

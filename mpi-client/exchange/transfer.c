/**
 * Copies the elements of a round: into this rank's slot and those of its neighbours, and into the send buffer, which
 * alltoallv moves. It runs in the thread that uses the handle, without a lock.
 */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

supply_status_t exchange_transfer_init(struct transfer *transfer, uint32_t ranks, size_t window_bytes,
                                       struct failure *failure) {
    *transfer = (struct transfer){
        .send = malloc(window_bytes),
        .send_bytes = window_bytes,
        .send_parts = calloc(ranks, sizeof *transfer->send_parts),
        .receive_parts = calloc(ranks, sizeof *transfer->receive_parts),
    };
    if (transfer->send != NULL && transfer->send_parts != NULL && transfer->receive_parts != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                        "out of memory for a window of %zu bytes: set window_bytes smaller", window_bytes);
}

supply_status_t exchange_transfer_set_columns(struct transfer *transfer, const struct columns *columns,
                                              struct failure *failure) {
    transfer->offsets = calloc(columns->buffer_count, sizeof *transfer->offsets);
    if (transfer->offsets != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

supply_status_t exchange_transfer_reserve(struct transfer *transfer, size_t window_bytes, struct failure *failure) {
    if (window_bytes <= transfer->send_bytes) return SUPPLY_OK;
    uint8_t *larger = window_bytes <= INT32_MAX ? malloc(window_bytes) : NULL;
    if (larger == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                            "out of memory for a window of %zu bytes, which has an element for each rank at the end of "
                            "an epoch: supply the ranks with more equal numbers of elements",
                            window_bytes);
    free(transfer->send);
    transfer->send = larger;
    transfer->send_bytes = window_bytes;
    return SUPPLY_OK;
}

void exchange_transfer_free(struct transfer *transfer) {
    free(transfer->send);
    free(transfer->offsets);
    free(transfer->send_parts);
    free(transfer->receive_parts);
    *transfer = (struct transfer){0};
}

static struct pick pick_for(const struct cargo *cargo, uint32_t rank) {
    return exchange_round_pick(cargo->round, cargo->destinations, rank);
}

/* Bytes of that wire buffer for that rank. */
static size_t sent_bytes(const struct cargo *cargo, const struct wire_buffer *buffer, uint32_t rank) {
    const uint64_t *message = exchange_message(cargo->round->messages, cargo->round, rank);
    return exchange_wire_bytes(cargo->columns, buffer, cargo->round->counts[rank], message + COUNT_BYTES);
}

/* The lengths of a column of any length, for all ranks. */
static int32_t *lengths_of(const struct transfer *transfer, uint32_t variable) {
    return (int32_t *)(void *)transfer->send + (size_t)variable * transfer->elements;
}

/* Sums up the lengths for that rank. False: they are not those that were gathered, for which it has granted space. */
static bool transfer_sum_up(struct transfer *transfer, const struct cargo *cargo, uint32_t rank, uint32_t first) {
    const struct columns *columns = cargo->columns;
    struct round *round = cargo->round;
    uint64_t *message = exchange_message(round->messages, round, rank);
    uint64_t bytes = (uint64_t)round->counts[rank] * columns->fixed_bytes;
    for (uint32_t i = 0; i < columns->variable_count; i++) {
        const int32_t *lengths = lengths_of(transfer, i) + first;
        message[COUNT_BYTES + i] = 0;
        for (uint32_t k = 0; k < round->counts[rank]; k++) message[COUNT_BYTES + i] += (uint32_t)lengths[k];
        bytes += message[COUNT_BYTES + i];
    }
    if (bytes == round->bytes[rank]) return true;
    for (uint32_t i = 0; i < columns->variable_count; i++) {
        memset(lengths_of(transfer, i) + first, 0, round->counts[rank] * sizeof(int32_t));
        message[COUNT_BYTES + i] = 0;
    }
    return false;
}

bool exchange_pack_counts(struct transfer *transfer, const struct cargo *cargo) {
    const struct columns *columns = cargo->columns;
    const struct round *round = cargo->round;
    bool is_whole = true;
    transfer->elements = 0;
    for (uint32_t rank = 0; rank < round->ranks; rank++) transfer->elements += round->counts[rank];
    for (uint32_t rank = 0, first = 0; rank < round->ranks; first += round->counts[rank++]) {
        const struct pick pick = pick_for(cargo, rank);
        for (uint32_t i = 0; i < columns->buffer_count && columns->variable_count > 0; i++) {
            const struct wire_buffer *buffer = &columns->buffers[i];
            if (buffer->kind == WIRE_LENGTHS)
                exchange_pack_lengths(&pick, buffer->column, lengths_of(transfer, buffer->variable) + first);
        }
        is_whole &= transfer_sum_up(transfer, cargo, rank, first);
    }
    return is_whole;
}

/* Packs one wire buffer, except lengths. */
static bool pack(const struct transfer *transfer, const struct cargo *cargo, const struct wire_buffer *buffer,
                 uint32_t rank, uint32_t first, uint8_t *to) {
    const struct column_plan *plan = &cargo->columns->plans[buffer->column];
    const struct pick pick = pick_for(cargo, rank);
    if (buffer->kind == WIRE_VALIDITY)
        exchange_pack_validity(&pick, buffer->column, to);
    else if (exchange_is_variable(plan))
        return exchange_pack_values(&pick, buffer->column, lengths_of(transfer, buffer->variable) + first, to);
    else
        exchange_pack_data(&pick, buffer->column, &plan->format, to);
    return true;
}

/* Its elements are not sent. */
static bool is_copied(const struct cargo *cargo, uint32_t rank) { return cargo->neighbours->all[rank].ring != NULL; }

bool exchange_pack_others(struct transfer *transfer, const struct cargo *cargo) {
    const struct columns *columns = cargo->columns;
    const struct round *round = cargo->round;
    bool is_whole = true;
    size_t at = (size_t)transfer->elements * columns->variable_count * sizeof(int32_t);
    for (uint32_t i = 0; i < columns->buffer_count; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        if (buffer->kind == WIRE_LENGTHS) continue;
        transfer->offsets[i] = at;
        for (uint32_t rank = 0, first = 0; rank < round->ranks; first += round->counts[rank++]) {
            if (is_copied(cargo, rank)) continue;
            is_whole &= pack(transfer, cargo, buffer, rank, first, transfer->send + at);
            at += sent_bytes(cargo, buffer, rank);
        }
    }
    return is_whole;
}

enum copied exchange_copy(const struct transfer *transfer, const struct cargo *cargo, uint32_t rank) {
    const struct columns *columns = cargo->columns;
    struct place place;
    if (!exchange_neighbours_find(cargo->neighbours, rank, columns, cargo->round, &place)) return COPIED_NOTHING;
    uint32_t first = 0;
    for (uint32_t i = 0; i < rank; i++) first += cargo->round->counts[i];
    bool is_whole = true;
    for (uint32_t i = 0; i < columns->buffer_count; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        uint8_t *to = place.layout->slot.address + place.layout->offsets[i] +
                      exchange_wire_bytes(columns, buffer, place.elements, place.value_bytes);
        if (buffer->kind == WIRE_LENGTHS)
            memcpy(to, lengths_of(transfer, buffer->variable) + first, cargo->round->counts[rank] * sizeof(int32_t));
        else
            is_whole &= pack(transfer, cargo, buffer, rank, first, to);
    }
    return is_whole ? COPIED : COPIED_CHANGED;
}

/* Where the elements of each rank arrive in that wire buffer, unless they are copied there. */
static void find_arrivals(struct part *parts, const struct cargo *cargo, const struct slot_layout *layout,
                          uint32_t index) {
    size_t at = layout->offsets[index];
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        const uint64_t *message = exchange_message(cargo->round->messages_in, cargo->round, rank);
        const size_t bytes = exchange_wire_bytes(cargo->columns, &cargo->columns->buffers[index],
                                                 message[COUNT_ELEMENTS], message + COUNT_BYTES);
        parts[rank] = (struct part){.offset = at, .bytes = cargo->neighbours->links_in[rank] ? 0 : bytes};
        at += bytes;
    }
}

supply_status_t exchange_move(struct transfer *transfer, const struct cargo *cargo, const struct slot_layout *layout,
                              struct collective *collective, struct failure *failure) {
    const struct wire_buffer *buffer = &cargo->columns->buffers[transfer->moving];
    const bool is_lengths = buffer->kind == WIRE_LENGTHS;
    size_t at = is_lengths ? buffer->variable * (size_t)transfer->elements * sizeof(int32_t)
                           : transfer->offsets[transfer->moving];
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        const size_t bytes = sent_bytes(cargo, buffer, rank);
        const bool is_sent = !is_copied(cargo, rank);
        transfer->send_parts[rank] = (struct part){.offset = at, .bytes = is_sent ? bytes : 0};
        if (is_sent || is_lengths) at += bytes;
    }
    find_arrivals(transfer->receive_parts, cargo, layout, transfer->moving);
    return exchange_alltoallv(collective, transfer->send, transfer->send_parts, layout->slot.address,
                              transfer->receive_parts, failure);
}

/**
 * Packs the send buffer, moves it by alltoallv, and turns a slot with received values into a block of the contract. The
 * slot is this rank's private memory; lengths from other ranks are checked before they are used. It runs in the thread
 * that uses the handle, without a lock.
 */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "block/schema.h"

/* Validity, offsets and data. */
enum { BUFFERS_OF_COLUMN = 3 };

size_t exchange_slot_bytes(uint32_t entries, size_t received_bytes) {
    const size_t of_columns = entries * ((size_t)BUFFERS_OF_COLUMN * BUFFER_ALIGNMENT + sizeof(int32_t));
    const size_t bytes = supply__block_header_bytes(entries) + of_columns + received_bytes;
    return (bytes + BLOCK_BYTES_UNIT - 1) / BLOCK_BYTES_UNIT * BLOCK_BYTES_UNIT;
}

supply_status_t exchange_slot_init(struct slot_layout *layout, const struct columns *columns, struct failure *failure) {
    layout->places = calloc(columns->buffer_count, sizeof *layout->places);
    layout->value_bytes = calloc(columns->variable_count + 1, sizeof *layout->value_bytes);
    if (layout->places != NULL && layout->value_bytes != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_slot_free(struct slot_layout *layout) {
    free(layout->places);
    free(layout->value_bytes);
    *layout = (struct slot_layout){0};
}

static void sum_up_messages(struct slot_layout *layout, const struct columns *columns, struct round *round) {
    layout->elements = 0;
    memset(layout->value_bytes, 0, columns->variable_count * sizeof *layout->value_bytes);
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint64_t *message = exchange_message(round->messages_in, round, rank);
        layout->elements += message[COUNT_ELEMENTS];
        for (uint32_t i = 0; i < columns->variable_count; i++) layout->value_bytes[i] += message[COUNT_BYTES + i];
    }
}

bool exchange_slot_place(struct slot_layout *layout, const struct columns *columns, const struct slot *slot) {
    layout->slot = *slot;
    layout->end = supply__block_header_bytes(columns->schema.count);
    for (uint32_t i = 0; i < columns->buffer_count; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        /* Lengths arrive where the offsets after the first one will be. */
        const size_t before = buffer->kind == WIRE_LENGTHS ? sizeof(int32_t) : 0;
        layout->places[i] = layout->end + before;
        layout->end +=
            supply__aligned(before + exchange_wire_bytes(columns, buffer, layout->elements, layout->value_bytes));
    }
    return layout->end <= slot->bytes;
}

bool exchange_slot_lay_out(struct slot_layout *layout, const struct columns *columns, struct round *round,
                           const struct slot *slot) {
    sum_up_messages(layout, columns, round);
    return exchange_slot_place(layout, columns, slot);
}

/* Eight bytes of 0 or 1 become one byte of bits, in place. */
static void pack_bits(uint8_t *bits, const uint8_t *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i += 8) {
        uint8_t packed = 0;
        for (unsigned bit = 0; bit < 8 && i + bit < count; bit++) packed |= (uint8_t)((bytes[i + bit] & 1) << bit);
        bits[i / 8] = packed;
    }
}

/* What finishing a column needs. */
struct finished {
    const struct slot_layout *layout;
    const struct column_plan *plan;
    struct block_column *column;
    uint64_t skipped;
    uint64_t kept;
    uint64_t value_bytes;   /* that have arrived */
    uint64_t skipped_bytes; /* of the values of skipped elements */
};

static void finish_validity(struct finished *finished, size_t place) {
    uint8_t *at = finished->layout->slot.address + place;
    const uint8_t *bytes = at + finished->skipped;
    uint64_t valid = 0;
    for (uint64_t i = 0; i < finished->kept; i++) valid += bytes[i] & 1;
    if (valid == finished->kept) return;
    pack_bits(at, bytes, finished->kept);
    finished->column->null_count = (uint32_t)(finished->kept - valid);
    finished->column->validity_offset = (uint32_t)place;
    finished->column->validity_bytes = (uint32_t)((finished->kept + 7) / 8);
}

/* False: the lengths do not add up to the bytes that have arrived. */
static bool finish_lengths(struct finished *finished, size_t place) {
    const size_t begin = place - sizeof(int32_t);
    int32_t *offsets = (int32_t *)(finished->layout->slot.address + begin);
    const int32_t *lengths = offsets + 1;
    uint64_t at = 0, skipped_bytes = 0;
    for (uint64_t i = 0; i < finished->skipped; i++) skipped_bytes += (uint32_t)lengths[i];
    offsets[0] = 0;
    for (uint64_t i = 0; i < finished->kept; i++) {
        at += (uint32_t)lengths[finished->skipped + i];
        offsets[i + 1] = (int32_t)at;
    }
    finished->skipped_bytes = skipped_bytes;
    finished->column->offsets_offset = (uint32_t)begin;
    finished->column->offsets_bytes = (uint32_t)((finished->kept + 1) * sizeof(int32_t));
    return at + skipped_bytes == finished->value_bytes;
}

static void finish_data(struct finished *finished, size_t place) {
    const struct column_plan *plan = finished->plan;
    uint8_t *at = finished->layout->slot.address + place;
    uint64_t bytes = (finished->kept + 7) / 8;
    if (plan->format.layout == FORMAT_BITS) {
        pack_bits(at, at + finished->skipped, finished->kept);
    } else {
        const bool is_variable = exchange_is_variable(plan);
        const uint64_t first = is_variable ? finished->skipped_bytes : finished->skipped * plan->format.bytes;
        bytes = is_variable ? finished->value_bytes - first : finished->kept * plan->format.bytes;
        if (first > 0) memmove(at, at + first, bytes);
    }
    finished->column->data_offset = (uint32_t)place;
    finished->column->data_bytes = (uint32_t)bytes;
}

size_t exchange_slot_finish(const struct slot_layout *layout, const struct columns *columns, uint64_t skipped) {
    struct block_column *table = (struct block_column *)(layout->slot.address + sizeof(struct block_header));
    struct finished finished = {.layout = layout, .skipped = skipped, .kept = layout->elements - skipped};
    memset(table, 0, columns->schema.count * sizeof *table);
    for (uint32_t i = 0; i < columns->buffer_count; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        finished.plan = &columns->plans[buffer->column];
        finished.column = &table[buffer->column];
        if (buffer->kind == WIRE_VALIDITY) {
            finish_validity(&finished, layout->places[i]);
        } else if (buffer->kind == WIRE_LENGTHS) {
            finished.value_bytes = layout->value_bytes[buffer->variable];
            if (!finish_lengths(&finished, layout->places[i])) return 0;
        } else {
            finish_data(&finished, layout->places[i]);
        }
    }
    return layout->end;
}

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
    transfer->places = calloc(columns->buffer_count, sizeof *transfer->places);
    if (transfer->places != NULL) return SUPPLY_OK;
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
    free(transfer->places);
    free(transfer->send_parts);
    free(transfer->receive_parts);
    *transfer = (struct transfer){0};
}

static struct pick pick_for(const struct cargo *cargo, uint32_t rank) {
    return exchange_round_pick(cargo->round, cargo->window, cargo->destinations, rank);
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
static bool sum_up(struct transfer *transfer, const struct cargo *cargo, uint32_t rank, uint32_t first) {
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
        is_whole &= sum_up(transfer, cargo, rank, first);
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

bool exchange_pack_others(struct transfer *transfer, const struct cargo *cargo) {
    const struct columns *columns = cargo->columns;
    const struct round *round = cargo->round;
    bool is_whole = true;
    size_t at = (size_t)transfer->elements * columns->variable_count * sizeof(int32_t);
    for (uint32_t i = 0; i < columns->buffer_count; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        if (buffer->kind == WIRE_LENGTHS) continue;
        transfer->places[i] = at;
        for (uint32_t rank = 0, first = 0; rank < round->ranks; first += round->counts[rank++]) {
            if (rank == round->rank) continue;
            is_whole &= pack(transfer, cargo, buffer, rank, first, transfer->send + at);
            at += sent_bytes(cargo, buffer, rank);
        }
    }
    return is_whole;
}

/* Where the elements of each rank arrive in that wire buffer; its own ones are copied there and not sent. */
static void place_arrivals(struct part *parts, const struct cargo *cargo, const struct slot_layout *layout,
                           uint32_t index) {
    size_t at = layout->places[index];
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        const uint64_t *message = exchange_message(cargo->round->messages_in, cargo->round, rank);
        const size_t bytes = exchange_wire_bytes(cargo->columns, &cargo->columns->buffers[index],
                                                 message[COUNT_ELEMENTS], message + COUNT_BYTES);
        parts[rank] = (struct part){.offset = at, .bytes = rank == cargo->round->rank ? 0 : bytes};
        at += bytes;
    }
}

bool exchange_pack_own(const struct transfer *transfer, const struct cargo *cargo, const struct slot_layout *layout,
                       uint32_t index) {
    const struct wire_buffer *buffer = &cargo->columns->buffers[index];
    const uint32_t mine = cargo->round->rank;
    size_t at = layout->places[index];
    uint32_t first = 0;
    for (uint32_t rank = 0; rank < mine; rank++) {
        const uint64_t *message = exchange_message(cargo->round->messages_in, cargo->round, rank);
        at += exchange_wire_bytes(cargo->columns, buffer, message[COUNT_ELEMENTS], message + COUNT_BYTES);
        first += cargo->round->counts[rank];
    }
    uint8_t *to = layout->slot.address + at;
    if (buffer->kind != WIRE_LENGTHS) return pack(transfer, cargo, buffer, mine, first, to);
    memcpy(to, lengths_of(transfer, buffer->variable) + first, cargo->round->counts[mine] * sizeof(int32_t));
    return true;
}

supply_status_t exchange_move(struct transfer *transfer, const struct cargo *cargo, const struct slot_layout *layout,
                              struct collective *collective, struct failure *failure) {
    const struct wire_buffer *buffer = &cargo->columns->buffers[transfer->moving];
    const bool is_lengths = buffer->kind == WIRE_LENGTHS;
    const uint32_t mine = cargo->round->rank;
    size_t at = is_lengths ? buffer->variable * (size_t)transfer->elements * sizeof(int32_t)
                           : transfer->places[transfer->moving];
    for (uint32_t rank = 0; rank < cargo->round->ranks; rank++) {
        const size_t bytes = sent_bytes(cargo, buffer, rank);
        transfer->send_parts[rank] = (struct part){.offset = at, .bytes = rank == mine ? 0 : bytes};
        if (rank != mine || is_lengths) at += bytes;
    }
    place_arrivals(transfer->receive_parts, cargo, layout, transfer->moving);
    return exchange_alltoallv(collective, transfer->send, transfer->send_parts, layout->slot.address,
                              transfer->receive_parts, failure);
}

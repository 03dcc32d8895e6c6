/**
 * Lays out a slot, and turns it, with received values, into a block of the contract. Other ranks may write into it:
 * lengths are checked before they are used. Its caller has the exchange's lock.
 */
#include "slot.h"

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
    layout->offsets = calloc(columns->buffer_count, sizeof *layout->offsets);
    layout->value_bytes = calloc(2 * columns->variable_count + 1, sizeof *layout->value_bytes);
    layout->bytes_before = layout->value_bytes + columns->variable_count;
    if (layout->offsets != NULL && layout->value_bytes != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_slot_free(struct slot_layout *layout) {
    free(layout->offsets);
    free(layout->value_bytes);
    *layout = (struct slot_layout){0};
}

static void slot_sum_up(struct slot_layout *layout, const struct columns *columns, struct round *round) {
    layout->elements = 0;
    memset(layout->value_bytes, 0, columns->variable_count * sizeof *layout->value_bytes);
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint64_t *offer = exchange_offer(round->offers_in, round, rank);
        layout->elements += offer[OFFER_ELEMENTS];
        for (uint32_t i = 0; i < columns->variable_count; i++) layout->value_bytes[i] += offer[OFFER_BYTES + i];
    }
}

bool exchange_slot_arrange(struct slot_layout *layout, const struct columns *columns, const struct slot *slot) {
    layout->slot = *slot;
    layout->end = supply__block_header_bytes(columns->schema.count);
    for (uint32_t i = 0; i < columns->buffer_count; i++) {
        const struct wire_buffer *buffer = &columns->buffers[i];
        /* Lengths arrive where the offsets after the first one will be. */
        const size_t before = buffer->kind == WIRE_LENGTHS ? sizeof(int32_t) : 0;
        layout->offsets[i] = layout->end + before;
        layout->end +=
            supply__aligned(before + exchange_wire_bytes(columns, buffer, layout->elements, layout->value_bytes));
    }
    return layout->end <= slot->bytes;
}

bool exchange_slot_lay_out(struct slot_layout *layout, const struct columns *columns, struct round *round,
                           const struct slot *slot) {
    slot_sum_up(layout, columns, round);
    return exchange_slot_arrange(layout, columns, slot);
}

/* Eight bytes of 0 or 1 become one byte of bits, in place. */
static void slot_pack_bits(uint8_t *bits, const uint8_t *bytes, uint64_t count) {
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

static void slot_finish_validity(struct finished *finished, size_t offset) {
    uint8_t *at = finished->layout->slot.address + offset;
    const uint8_t *bytes = at + finished->skipped;
    uint64_t valid = 0;
    for (uint64_t i = 0; i < finished->kept; i++) valid += bytes[i] & 1;
    if (valid == finished->kept) return;
    slot_pack_bits(at, bytes, finished->kept);
    finished->column->null_count = (uint32_t)(finished->kept - valid);
    finished->column->validity_offset = (uint32_t)offset;
    finished->column->validity_bytes = (uint32_t)((finished->kept + 7) / 8);
}

/* False: the lengths do not add up to the bytes that have arrived. */
static bool slot_finish_lengths(struct finished *finished, size_t offset) {
    const size_t begin = offset - sizeof(int32_t);
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

static void slot_finish_data(struct finished *finished, size_t offset) {
    const struct column_plan *plan = finished->plan;
    uint8_t *at = finished->layout->slot.address + offset;
    uint64_t bytes = (finished->kept + 7) / 8;
    if (plan->format.layout == FORMAT_BITS) {
        slot_pack_bits(at, at + finished->skipped, finished->kept);
    } else {
        const bool is_variable = exchange_is_variable(plan);
        const uint64_t first = is_variable ? finished->skipped_bytes : finished->skipped * plan->format.bytes;
        bytes = is_variable ? finished->value_bytes - first : finished->kept * plan->format.bytes;
        if (first > 0) memmove(at, at + first, bytes);
    }
    finished->column->data_offset = (uint32_t)offset;
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
            slot_finish_validity(&finished, layout->offsets[i]);
        } else if (buffer->kind == WIRE_LENGTHS) {
            finished.value_bytes = layout->value_bytes[buffer->variable];
            if (!slot_finish_lengths(&finished, layout->offsets[i])) return 0;
        } else {
            slot_finish_data(&finished, layout->offsets[i]);
        }
    }
    return layout->end;
}

/** Makes blocks of sorted elements. */
#include <stdlib.h>
#include <string.h>

#include "sorter_state.h"

static uint64_t bytes_of(const struct sorter *sorter, uint32_t element) {
    uint32_t row;
    const struct piece *piece = exchange_window_find(&sorter->window, element, &row);
    return exchange_rows_bytes(piece->held, &sorter->columns, row, 1);
}

static bool add_picked(struct sorter *sorter, uint32_t count, uint32_t element) {
    if (count == sorter->picked_capacity) {
        const uint32_t capacity = count ? 2 * count : 1024;
        uint32_t *picked = reallocarray(sorter->picked, capacity, sizeof *picked);
        if (picked == NULL) return false;
        sorter->picked = picked;
        sorter->picked_capacity = capacity;
    }
    sorter->picked[count] = element;
    return true;
}

/* The next elements whose bytes fit into a block, at least one. Returns how many; 0: out of memory. */
static uint32_t pick(struct sorter *sorter) {
    uint32_t count = 0;
    uint64_t bytes = 0;
    while (sorter->merge.count > 0) {
        const uint32_t element = exchange_merge_peek(&sorter->merge);
        bytes += bytes_of(sorter, element);
        if (count > 0 && bytes > sorter->options.block_bytes) break;
        if (!add_picked(sorter, count, element)) return 0;
        exchange_merge_pop(&sorter->merge);
        count++;
    }
    return count;
}

static uint64_t sum_of_lengths(const struct pick *picked, uint32_t column) {
    uint64_t sum = 0;
    for (uint32_t i = 0, row; i < picked->count; i++) {
        const struct piece *piece = exchange_window_find(picked->window, picked->order[i], &row);
        sum += exchange_value_bytes(&piece->held->columns[column], row);
    }
    return sum;
}

static bool lay_out(struct sorter *sorter, const struct pick *picked, const struct slot *slot) {
    struct slot_layout *layout = &sorter->layout;
    layout->elements = picked->count;
    for (uint32_t i = 0; i < sorter->columns.buffer_count; i++) {
        const struct wire_buffer *buffer = &sorter->columns.buffers[i];
        if (buffer->kind == WIRE_LENGTHS)
            layout->value_bytes[buffer->variable] = sum_of_lengths(picked, buffer->column);
    }
    return exchange_slot_place(layout, &sorter->columns, slot);
}

static void copy_buffer(const struct sorter *sorter, const struct pick *picked, uint32_t index) {
    const struct wire_buffer *buffer = &sorter->columns.buffers[index];
    const struct column_plan *plan = &sorter->columns.plans[buffer->column];
    uint8_t *to = sorter->layout.slot.address + sorter->layout.places[index];
    if (buffer->kind == WIRE_VALIDITY)
        exchange_pack_validity(picked, buffer->column, to);
    else if (buffer->kind == WIRE_LENGTHS)
        exchange_pack_lengths(picked, buffer->column, (int32_t *)to);
    else if (exchange_is_variable(plan))
        /* The lengths are the buffer before. */
        exchange_pack_values(picked, buffer->column,
                             (const int32_t *)(sorter->layout.slot.address + sorter->layout.places[index - 1]), to);
    else
        exchange_pack_data(picked, buffer->column, &plan->format, to);
}

supply_status_t exchange_take_sorted(struct sorter *sorter, const struct slot *slot, uint32_t *elements, size_t *bytes,
                                     struct failure *failure) {
    *elements = pick(sorter);
    if (*elements == 0) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    const struct pick picked = {.window = &sorter->window, .order = sorter->picked, .count = *elements};
    *bytes = 0;
    if (lay_out(sorter, &picked, slot)) {
        for (uint32_t i = 0; i < sorter->columns.buffer_count; i++) copy_buffer(sorter, &picked, i);
        *bytes = exchange_slot_finish(&sorter->layout, &sorter->columns, 0);
    }
    if (*bytes > 0) return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "%s: sorted elements have changed in memory or in the file",
                       sorter->inspected.name);
}

void exchange_skip_sorted(struct sorter *sorter, uint64_t count) {
    for (; count > 0 && sorter->merge.count > 0; count--) exchange_merge_pop(&sorter->merge);
}

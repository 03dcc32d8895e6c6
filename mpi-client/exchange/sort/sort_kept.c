/** What a sorter keeps, in memory and in runs. */
#include <stdlib.h>
#include <string.h>

#include "sorter_state.h"

/* Of blocks, more is kept than their elements' bytes: padding, offsets, and what sorting needs. */
static size_t bytes_of(const struct held_block *held) {
    return held->block.bytes + (size_t)held->block.element_count * SORT_BYTES_OF_ELEMENT;
}

static void free_blocks(struct sorter *sorter) {
    for (uint32_t i = 0; i < sorter->window.piece_count; i++)
        exchange_free_held(sorter->window.pieces[i].held, NULL, sorter->columns.schema.count);
    exchange_window_clear(&sorter->window);
    sorter->kept_bytes = 0;
}

static void end_order(struct sorter *sorter) {
    exchange_merge_free(&sorter->merge);
    free(sorter->order);
    free(sorter->sequences);
    sorter->order = NULL;
    sorter->sequences = NULL;
}

/* The window's elements as one sorted sequence. */
static supply_status_t begin_order(struct sorter *sorter, struct failure *failure) {
    sorter->sequences = calloc(1, sizeof *sorter->sequences);
    const bool has_window = exchange_window_complete(&sorter->window);
    if (has_window) sorter->order = exchange_sort_window(&sorter->window, &sorter->by);
    const bool has_order = has_window && (sorter->order != NULL || sorter->window.elements == 0);
    if (sorter->sequences == NULL || !has_order)
        return supply_fail(failure, SUPPLY_ERROR_MEMORY,
                           "%s: out of memory to sort %u elements: set memory_bytes smaller", sorter->inspected.name,
                           sorter->window.elements);
    sorter->sequences[0] = (struct sequence){.order = sorter->order, .end = sorter->window.elements};
    if (exchange_merge_begin(&sorter->merge, &sorter->window, &sorter->by, sorter->sequences, 1)) return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
}

static supply_status_t append_sorted(struct sorter *sorter, const struct slot *slot, struct failure *failure) {
    while (sorter->merge.count > 0) {
        uint32_t elements;
        size_t bytes;
        supply_status_t status = exchange_take_sorted(sorter, slot, &elements, &bytes, failure);
        if (status == SUPPLY_OK)
            status = exchange_runs_append(&sorter->runs, slot->address, bytes, elements, sorter->folder, failure);
        if (status != SUPPLY_OK) return status;
    }
    return SUPPLY_OK;
}

static supply_status_t write_run(struct sorter *sorter, struct failure *failure) {
    const size_t slot_bytes = exchange_slot_bytes(sorter->options.block_bytes);
    uint8_t *memory = aligned_alloc(BUFFER_ALIGNMENT, slot_bytes);
    if (memory == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    /* The gaps between columns reach the file, too. */
    memset(memory, 0, slot_bytes);
    supply_status_t status = exchange_runs_begin(&sorter->runs, sorter->folder, failure);
    if (status == SUPPLY_OK) status = begin_order(sorter, failure);
    if (status == SUPPLY_OK) status = append_sorted(sorter, &(struct slot){memory, slot_bytes}, failure);
    free(memory);
    end_order(sorter);
    free_blocks(sorter);
    return status;
}

static supply_status_t check_count(const struct sorter *sorter, const supply_block_t *block, struct failure *failure) {
    if (sorter->kept_elements + block->element_count <= UINT32_MAX) return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_CONFIG,
                       "%s: more than %u elements of an epoch reach this rank, which it cannot sort: use more ranks",
                       sorter->inspected.name, UINT32_MAX);
}

supply_status_t exchange_keep(struct sorter *sorter, const supply_block_t *block, struct failure *failure) {
    const uint32_t columns = sorter->columns.schema.count;
    supply_status_t status = check_count(sorter, block, failure);
    if (status != SUPPLY_OK) return status;
    struct held_block *held = exchange_hold(sorter->inner, block, &sorter->columns, failure);
    if (held == NULL) return failure->status;
    status = exchange_copy_held(held, sorter->inner, columns, failure);
    if (status == SUPPLY_OK && !exchange_window_add(&sorter->window, held, 0, block->element_count))
        status = supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    if (status != SUPPLY_OK) {
        exchange_free_held(held, sorter->inner, columns);
        return status;
    }
    sorter->kept_bytes += bytes_of(held);
    sorter->kept_elements += block->element_count;
    sorter->epoch = block->epoch;
    return sorter->kept_bytes > sorter->options.memory_bytes ? write_run(sorter, failure) : SUPPLY_OK;
}

/* Each run is a sequence of the window of all runs. */
static void find_sequences(struct sorter *sorter) {
    for (uint32_t i = 0, at = 0; i < sorter->runs.block_count; i++) {
        const struct run_block *block = &sorter->runs.blocks[i];
        struct sequence *sequence = &sorter->sequences[block->run];
        if (sequence->end == 0) sequence->at = at;
        at += block->elements;
        sequence->end = at;
    }
}

static supply_status_t load_runs(struct sorter *sorter, struct failure *failure) {
    sorter->sequences = calloc(sorter->runs.count, sizeof *sorter->sequences);
    if (sorter->sequences == NULL)
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    const supply_status_t status = exchange_runs_load(&sorter->runs, &sorter->columns, &sorter->window, failure);
    if (status != SUPPLY_OK) return status;
    find_sequences(sorter);
    if (exchange_window_complete(&sorter->window) &&
        exchange_merge_begin(&sorter->merge, &sorter->window, &sorter->by, sorter->sequences, sorter->runs.count))
        return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
}

supply_status_t exchange_sort_kept(struct sorter *sorter, struct failure *failure) {
    if (sorter->runs.count == 0) return begin_order(sorter, failure);
    const supply_status_t status = sorter->window.elements > 0 ? write_run(sorter, failure) : SUPPLY_OK;
    return status == SUPPLY_OK ? load_runs(sorter, failure) : status;
}

void exchange_drop_kept(struct sorter *sorter) {
    end_order(sorter);
    free_blocks(sorter);
    exchange_runs_close(&sorter->runs);
    sorter->kept_elements = 0;
}

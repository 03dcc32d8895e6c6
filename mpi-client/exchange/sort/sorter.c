/**
 * A sorter as a filler of a handle, in the thread that uses it; and blocks of sorted elements. Blocks are checked (R3)
 * before it gets them; it needs no lock.
 */
#include "sorter.h"

#include <errno.h>
#include <stdlib.h>

#include "children.h"

static bool sorter_add_picked(struct sorter *sorter, uint32_t count, const struct source_row *element) {
    if (count == sorter->picked_capacity) {
        const uint32_t capacity = count ? 2 * count : 1024;
        struct source_row *picked = reallocarray(sorter->picked, capacity, sizeof *picked);
        if (picked == NULL) return false;
        sorter->picked = picked;
        sorter->picked_capacity = capacity;
    }
    sorter->picked[count] = *element;
    return true;
}

/* The next elements whose bytes fit into a block, at least one. Returns how many; 0: out of memory. */
static uint32_t sorter_pick(struct sorter *sorter) {
    uint32_t count = 0;
    uint64_t bytes = 0;
    while (sorter->merge.count > 0) {
        struct source_row element;
        const struct held_block *held =
            exchange_window_find(&sorter->window, exchange_merge_peek(&sorter->merge), &element.row)->held;
        element.columns = held->columns;
        bytes += exchange_rows_bytes(held, &sorter->columns, element.row, 1);
        if (count > 0 && bytes > sorter->options.block_bytes) break;
        if (!sorter_add_picked(sorter, count, &element)) return 0;
        exchange_merge_pop(&sorter->merge);
        count++;
    }
    return count;
}

static uint64_t sorter_sum_of_lengths(const struct pick *picked, uint32_t column) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < picked->count; i++)
        sum += exchange_value_bytes(&picked->rows[i].columns[column], picked->rows[i].row);
    return sum;
}

static bool sorter_lay_out(struct sorter *sorter, const struct pick *picked, const struct slot *slot) {
    struct slot_layout *layout = &sorter->layout;
    layout->elements = picked->count;
    for (uint32_t i = 0; i < sorter->columns.buffer_count; i++) {
        const struct wire_buffer *buffer = &sorter->columns.buffers[i];
        if (buffer->kind == WIRE_LENGTHS)
            layout->value_bytes[buffer->variable] = sorter_sum_of_lengths(picked, buffer->column);
    }
    return exchange_slot_arrange(layout, &sorter->columns, slot);
}

/* The lengths of a column of any length are the buffer in front of its values. */
static bool sorter_copy(const struct sorter *sorter, const struct pick *picked) {
    bool is_whole = true;
    int32_t *lengths = NULL;
    for (uint32_t i = 0; i < sorter->columns.buffer_count; i++) {
        const struct wire_buffer *buffer = &sorter->columns.buffers[i];
        uint8_t *to = sorter->layout.slot.address + sorter->layout.offsets[i];
        if (buffer->kind == WIRE_LENGTHS)
            exchange_pack_lengths(picked, buffer->column, lengths = (int32_t *)(void *)to);
        else
            is_whole &= exchange_pack(&sorter->columns, buffer, 1, picked, lengths, &(struct ahead){0}, &to);
    }
    return is_whole;
}

supply_status_t exchange_take_sorted(struct sorter *sorter, const struct slot *slot, uint32_t *elements, size_t *bytes,
                                     struct failure *failure) {
    *elements = sorter_pick(sorter);
    if (*elements == 0) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    const struct pick picked = {.rows = sorter->picked, .count = *elements};
    *bytes = 0;
    if (sorter_lay_out(sorter, &picked, slot) && sorter_copy(sorter, &picked))
        *bytes = exchange_slot_finish(&sorter->layout, &sorter->columns, 0);
    if (*bytes > 0) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%s: sorted elements have changed in memory or in the file",
                        sorter->inspected.name);
}

/* Drops sorted elements that an earlier run has consumed. */
static void sorter_skip_sorted(struct sorter *sorter, uint64_t count) {
    for (; count > 0 && sorter->merge.count > 0; count--) exchange_merge_pop(&sorter->merge);
}

/* As many blocks as a program usually holds at once. */
enum { SLOTS = 3 };

static supply_status_t sorter_fail_by_inner(struct sorter *sorter, supply_status_t status, struct failure *failure) {
    /* supply__fail() takes it from there. */
    errno = supply_error_errno(sorter->inner);
    return supply__fail(failure, status, "%s", supply_error(sorter->inner));
}

static supply_status_t sorter_find_column(struct sorter *sorter, struct failure *failure) {
    const struct schema *schema = &sorter->columns.schema;
    const int index = supply_column_index(sorter->inner, sorter->options.column);
    if (index < 0) return sorter_fail_by_inner(sorter, (supply_status_t)index, failure);
    sorter->by = (struct sort_column){(uint32_t)index, exchange_key_order(schema->entries[index].format)};
    return SUPPLY_OK;
}

static supply_status_t sorter_learn_columns(struct sorter *sorter, struct failure *failure) {
    if (sorter->columns.schema.count != 0) return SUPPLY_OK;
    supply_status_t status = exchange_columns_learn(&sorter->columns, sorter->inner, sorter->inspected.name, failure);
    if (status != SUPPLY_OK || sorter->columns.schema.count == 0) return status;
    TRY(sorter_find_column(sorter, failure));
    TRY(exchange_slot_init(&sorter->layout, &sorter->columns, failure));
    return supply__filler_set_schema(sorter->handle, &sorter->columns.whole, failure);
}

static supply_status_t sorter_learn_schema(void *context, struct failure *failure) {
    struct sorter *sorter = context;
    const int count = supply_column_count(sorter->inner);
    if (count == SUPPLY_ERROR_NO_SCHEMA) return SUPPLY_OK;
    return count < 0 ? sorter_fail_by_inner(sorter, (supply_status_t)count, failure)
                     : sorter_learn_columns(sorter, failure);
}

static supply_status_t sorter_begin_sorted(struct sorter *sorter, uint32_t epoch, struct failure *failure) {
    const struct position *start = &sorter->options.start;
    TRY(exchange_sort_kept(sorter, failure));
    sorter->is_sorted = true;
    sorter->epoch = epoch;
    sorter->returned = start->exchange.is_set && start->epoch == epoch ? start->exchange.elements : 0;
    sorter_skip_sorted(sorter, sorter->returned);
    return SUPPLY_OK;
}

/* A stream may end in the middle of an epoch. */
static supply_status_t sorter_end_data(struct sorter *sorter, struct failure *failure) {
    if (sorter->kept_elements == 0) return SUPPLY_END_OF_DATA;
    sorter->ends_data = true;
    return sorter_begin_sorted(sorter, sorter->epoch, failure);
}

static supply_status_t sorter_keep(struct sorter *sorter, const supply_block_t *block, struct failure *failure) {
    TRY(sorter_learn_columns(sorter, failure));
    return exchange_keep(sorter, block, failure);
}

static supply_status_t sorter_next(struct sorter *sorter, bool wait, supply_block_t *block) {
    return wait ? supply_next(sorter->inner, block) : supply_try_next(sorter->inner, block);
}

/* The other ranks are told at their next agreement. Until then this rank takes part, and drops what it receives. */
static supply_status_t sorter_fail_with_others(struct sorter *sorter, bool wait, struct failure *failure) {
    for (;;) {
        supply_block_t block;
        const supply_status_t status = sorter_next(sorter, wait, &block);
        if (status < 0) return sorter_fail_by_inner(sorter, status, failure);
        /* No agreement follows: the others have all of their elements. */
        if (status == SUPPLY_END_OF_DATA) {
            *failure = sorter->failed;
            return failure->status;
        }
        if (status == SUPPLY_AGAIN || status == SUPPLY_INTERRUPTED) return status;
        if (status == SUPPLY_OK) supply_release(sorter->inner, &block);
    }
}

static supply_status_t sorter_fail_on_all(struct sorter *sorter, bool wait, struct failure *failure) {
    sorter->failed = *failure;
    sorter->options.fail(sorter->options.exchange, failure);
    return sorter_fail_with_others(sorter, wait, failure);
}

/* SUPPLY_OK: something has been kept, or the epoch has ended. */
static supply_status_t sorter_collect(struct sorter *sorter, bool wait, struct failure *failure) {
    supply_block_t block;
    const supply_status_t status = sorter_next(sorter, wait, &block);
    supply_status_t own = SUPPLY_OK;
    if (status < 0) return sorter_fail_by_inner(sorter, status, failure);
    if (status == SUPPLY_OK)
        own = sorter_keep(sorter, &block, failure);
    else if (status == SUPPLY_END_OF_EPOCH)
        own = sorter_begin_sorted(sorter, block.epoch, failure);
    else
        own = status == SUPPLY_END_OF_DATA ? sorter_end_data(sorter, failure) : status;
    if (own < 0 && status != SUPPLY_END_OF_DATA) return sorter_fail_on_all(sorter, wait, failure);
    return own;
}

static supply_status_t sorter_take(struct sorter *sorter, const struct slot *slot, struct filled *filled,
                                   struct failure *failure) {
    *filled = (struct filled){.epoch = sorter->epoch, .first_element = sorter->returned};
    if (sorter->merge.count > 0) {
        supply_status_t status = exchange_take_sorted(sorter, slot, &filled->element_count, &filled->bytes, failure);
        if (status == SUPPLY_OK)
            status = exchange_children_unpack(&sorter->columns, slot, filled->element_count, &filled->bytes, failure);
        sorter->returned += filled->element_count;
        return status;
    }
    exchange_drop_kept(sorter);
    sorter->is_sorted = false;
    return sorter->ends_data ? SUPPLY_END_OF_DATA : SUPPLY_END_OF_EPOCH;
}

static supply_status_t sorter_fill(void *context, const struct slot *slot, bool wait, struct filled *filled,
                                   struct failure *failure) {
    struct sorter *sorter = context;
    if (sorter->failed.status != SUPPLY_OK) return sorter_fail_with_others(sorter, wait, failure);
    while (!sorter->is_sorted) {
        const supply_status_t status = sorter_collect(sorter, wait, failure);
        filled->epoch = sorter->epoch;
        if (status != SUPPLY_OK) return status;
    }
    return sorter_take(sorter, slot, filled, failure);
}

/* The order is made again from the beginning of the epoch, and what was consumed is dropped. */
static supply_status_t sorter_position(const void *context, const struct position *consumed,
                                       struct position *position) {
    const struct sorter *sorter = context;
    const struct position *start = &sorter->options.start;
    const bool is_start = !consumed->inside && consumed->epoch == start->epoch;
    *position = is_start ? *start : (struct position){.epoch = consumed->epoch};
    if (sorter->options.header->plan != 0) position->plan = sorter->options.header->plan;
    if (consumed->inside)
        position->exchange = (struct exchange_position){
            .is_set = true, .elements = consumed->element, .settings = *sorter->options.settings};
    return SUPPLY_OK;
}

static const supply_t *sorter_pair(const void *context) { return ((const struct sorter *)context)->inner; }

static void sorter_free_sorter(struct sorter *sorter) {
    exchange_drop_kept(sorter);
    exchange_window_free(&sorter->window);
    exchange_slot_free(&sorter->layout);
    exchange_columns_free(&sorter->columns);
    free(sorter->picked);
    free(sorter);
}

static supply_status_t sorter_close_sorter(void *context, double seconds, const char *reason, bool *keep) {
    struct sorter *sorter = context;
    *keep = false;
    /* The inner handle knows best why: Spark, another rank, or nothing but an early end. */
    (void)reason;
    const supply_status_t status = supply_close_within(sorter->inner, seconds, NULL);
    if (status != SUPPLY_AGAIN && status != SUPPLY_INTERRUPTED) sorter_free_sorter(sorter);
    return status;
}

static void sorter_abort_sorter(void *context, const char *reason, bool *keep) {
    struct sorter *sorter = context;
    *keep = false;
    supply_abort(sorter->inner, reason);
    sorter_free_sorter(sorter);
}

static void sorter_abandon(void *context) {
    struct sorter *sorter = context;
    supply_abandon_in_child(sorter->inner);
    sorter_free_sorter(sorter);
}

supply_status_t exchange_sort(supply_t **supply, const struct sorter_options *options, struct failure *failure) {
    struct sorter *sorter = calloc(1, sizeof *sorter);
    if (sorter == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    sorter->inner = *supply;
    sorter->options = *options;
    exchange_window_clear(&sorter->window);
    const struct filler filler = {.context = sorter,
                                  .fill = sorter_fill,
                                  .learn_schema = sorter_learn_schema,
                                  .position = sorter_position,
                                  .pair = sorter_pair,
                                  .close = sorter_close_sorter,
                                  .abort = sorter_abort_sorter,
                                  .abandon = sorter_abandon};
    supply_status_t status = supply__filler_inspect(*supply, &sorter->inspected);
    if (status == SUPPLY_OK)
        status =
            supply__filler_open(&sorter->handle, &filler, &sorter->inspected,
                                exchange_slot_bytes(SCHEMA_ENTRIES_MAX, options->block_bytes), SLOTS, NULL, failure);
    if (status != SUPPLY_OK) {
        sorter_free_sorter(sorter);
        return status;
    }
    *supply = sorter->handle;
    return SUPPLY_OK;
}

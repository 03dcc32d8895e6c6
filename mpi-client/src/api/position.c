/**
 * supply_position_save() and supply_position_after(), and supply_counts(): where a rank is in its data, and what a
 * whole epoch has for it. They read the header that the task writes, each field once. Only the thread that uses the
 * handle calls these functions.
 */
#include <inttypes.h>

#include "api/handle.h"

/* Of a handle with a filler, the position says how much of a window is consumed. */
static supply_status_t position_store(const supply_t *supply, const struct position *consumed,
                                      supply_position_t *packed) {
    struct position position = *consumed;
    const uint64_t plan = supply->pair.mapped_file.header->plan;
    if (plan != 0) position.plan = plan;
    supply_status_t status = SUPPLY_OK;
    if (supply->is_filled) status = supply->filler.position(supply->filler.context, consumed, &position);
    if (status == SUPPLY_OK) supply__position_pack(&position, packed);
    return status;
}

supply_status_t supply_position_save(const supply_t *supply, supply_position_t *position) {
    TRY(supply__check_open(supply));
    if (position == NULL) return SUPPLY_ERROR_ARGUMENT;
    supply__lock(supply);
    struct position consumed = supply->consumed;
    const uint64_t released = supply->pair.released;
    supply__unlock(supply);
    if (supply->iterating && supply->iterated.sequence == released) {
        consumed.epoch = supply->iterated.epoch;
        consumed.inside = true;
        consumed.partition = supply->iterated.partition;
        consumed.element = supply->iterated.first_element + supply->next_datum;
    }
    return position_store(supply, &consumed, position);
}

supply_status_t supply_position_after(const supply_t *supply, const supply_block_t *block, uint32_t elements,
                                      supply_position_t *packed) {
    TRY(supply__check_open(supply));
    if (block == NULL || packed == NULL || elements > block->element_count) return SUPPLY_ERROR_ARGUMENT;
    const bool is_block = block->element_count > 0;
    const struct position position = {
        .epoch = is_block ? block->epoch : block->epoch + 1,
        .inside = is_block,
        .partition = is_block ? block->partition : 0,
        .element = is_block ? block->first_element + elements : 0,
    };
    return position_store(supply, &position, packed);
}

static supply_status_t position_read_counts(supply_t *supply, supply_counts_t *counts) {
    const struct mapped_file_header *header = supply->pair.mapped_file.header;
    const uint32_t known = __atomic_load_n(&header->counts_known, __ATOMIC_ACQUIRE);
    if (known == 0) return SUPPLY_AGAIN;
    const supply_counts_t read = {.epoch_elements = __atomic_load_n(&header->epoch_elements, __ATOMIC_RELAXED),
                                  .epoch_steps = __atomic_load_n(&header->epoch_steps, __ATOMIC_RELAXED)};
    if (known > 1)
        return supply__fail(&supply->failure, SUPPLY_ERROR_CONTRACT, "%s: counts_known is %" PRIu32, supply->pair.name,
                            known);
    if (read.epoch_steps > read.epoch_elements)
        return supply__fail(&supply->failure, SUPPLY_ERROR_CONTRACT,
                            "%s: epoch_steps is %" PRIu64 ", above epoch_elements, which is %" PRIu64,
                            supply->pair.name, read.epoch_steps, read.epoch_elements);
    *counts = read;
    return SUPPLY_OK;
}

supply_status_t supply_counts(supply_t *supply, supply_counts_t *counts) {
    TRY(supply__check_open(supply));
    if (counts == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_counts: counts must not be NULL");
    *counts = (supply_counts_t){0};
    return position_read_counts(supply, counts);
}

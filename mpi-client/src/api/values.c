/**
 * Single values of a held block: supply_value() and supply_gather(), and Datums by index or one after the other.
 * Offsets and views lie in memory that the task may change, so each is read once, checked again, and used. They need no
 * lock: a block that is held stays.
 */
#include <string.h>

#include "api/handle.h"
#include "base/shared.h"
#include "block/foreign_files.h"
#include "supply_datum.h"

/* Offsets are in shared memory and were checked once. Here each is read once, checked again, and used. */
static bool find_by_offsets(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    const int32_t begin = SHARED_READ(column->offsets[index]), end = SHARED_READ(column->offsets[index + 1]);
    if (begin < 0 || end < begin || (size_t)end > column->data_bytes) return false;
    *data = (const uint8_t *)column->data + begin;
    *bytes = (size_t)(end - begin);
    return true;
}

/* The same for a view. */
static bool find_by_view(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    const supply_view_t *shared = &column->views[index];
    const supply_view_t view = {.bytes = SHARED_READ(shared->bytes),
                                .window = SHARED_READ(shared->window),
                                .offset = SHARED_READ(shared->offset)};
    *bytes = (size_t)view.bytes;
    if (!supply__view_is_inline(&view)) return supply__view_find(&view, column->windows, column->window_count, data);
    *data = column->views[index].start;
    return true;
}

/* Where value `index` is. False: what was checked has changed since. */
static bool value_find(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    return column->views != NULL ? find_by_view(column, index, data, bytes)
                                 : find_by_offsets(column, index, data, bytes);
}

/* False: the column has no values of any length, or not those elements. */
static bool has_values(const supply_column_t *column, uint32_t first, uint32_t count) {
    return column != NULL && (column->views != NULL || column->offsets != NULL) && column->child_count == 0 &&
           first <= column->element_count && count <= column->element_count - first;
}

supply_status_t supply_value_checked(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    if (data == NULL || bytes == NULL || !has_values(column, index, 1)) return SUPPLY_ERROR_ARGUMENT;
    return value_find(column, index, data, bytes) ? SUPPLY_OK : SUPPLY_ERROR_CONTRACT;
}

supply_status_t supply_gather(const supply_column_t *column, uint32_t first, uint32_t count, int64_t *ends, void *to,
                              size_t to_bytes) {
    if (!has_values(column, first, count)) return SUPPLY_ERROR_ARGUMENT;
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const void *data;
        size_t bytes;
        if (!value_find(column, first + i, &data, &bytes)) return SUPPLY_ERROR_CONTRACT;
        if (to != NULL) {
            if (bytes > to_bytes - at) return SUPPLY_ERROR_ARGUMENT;
            memcpy((uint8_t *)to + at, data, bytes);
        }
        at += bytes;
        if (ends != NULL) ends[i] = (int64_t)at;
    }
    return SUPPLY_OK;
}

static supply_status_t find_columns(supply_t *supply, const struct block *block, struct datum_columns *columns) {
    const char *name = supply->pair.name;
    supply_status_t status = supply__schema_check_datum(&supply->blocks.schema, name, &supply->failure);
    for (uint32_t i = 0; i < DATUM_COLUMNS && status == SUPPLY_OK; i++) {
        supply_column_t *column = &columns->column[i];
        status = supply__block_column(&supply->blocks, &supply->pair, block, i, column, &supply->failure);
        if (status == SUPPLY_OK && column->null_count != 0)
            status = supply__fail(&supply->failure, SUPPLY_ERROR_CONTRACT,
                                  "%s: column '%s' holds nulls, a Datum's never", name, column->name);
    }
    return status;
}

static int32_t int32_at(const supply_column_t *column, uint32_t index) {
    return ((const int32_t *)column->data)[index];
}

supply_status_t supply__fail_by_changed_block(supply_t *supply) {
    return supply__fail(
        &supply->failure, SUPPLY_ERROR_CONTRACT,
        "%s: offsets or views of a block changed while it was held: is something else writing into the mapped "
        "file?",
        supply->pair.name);
}

static supply_status_t fill(supply_t *supply, const struct datum_columns *columns, uint32_t epoch, uint32_t index,
                            supply_datum_t *to) {
    const supply_column_t *column = columns->column;
    supply_datum_t datum;
    if (!value_find(&column[DATUM_KEY], index, &datum.key, &datum.key_bytes) ||
        !value_find(&column[DATUM_DATA], index, &datum.data, &datum.data_bytes))
        return supply__fail_by_changed_block(supply);
    datum.label = int32_at(&column[DATUM_LABEL], index);
    datum.channels = int32_at(&column[DATUM_CHANNELS], index);
    datum.height = int32_at(&column[DATUM_HEIGHT], index);
    datum.width = int32_at(&column[DATUM_WIDTH], index);
    datum.encoded = ((const uint8_t *)column[DATUM_ENCODED].data)[index / 8] >> index % 8 & 1;
    datum.epoch = epoch;
    *to = datum;
    return SUPPLY_OK;
}

supply_status_t supply_datum(supply_t *supply, const supply_block_t *block, uint32_t index, supply_datum_t *datum) {
    if (supply__check_open(supply) != SUPPLY_OK) return supply__check_open(supply);
    if (block == NULL || datum == NULL || !supply__holds(supply, block->sequence))
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_datum: %s",
                            block == NULL || datum == NULL ? "block and datum must not be NULL"
                                                           : "the block is not held: it has been released");
    const struct block *held = supply__blocks_at(&supply->blocks, &supply->pair, block->sequence);
    if (index >= held->notification.element_count)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_datum: no element %u in a block of %u",
                            index, held->notification.element_count);
    struct datum_columns columns;
    supply_status_t status = find_columns(supply, held, &columns);
    return status == SUPPLY_OK ? fill(supply, &columns, held->notification.epoch, index, datum) : status;
}

/* Releases the iterator's block and receives the next one. */
static supply_status_t advance(supply_t *supply) {
    if (supply->iterating) supply__release_block(supply, supply->iterated.sequence);
    supply->iterating = false;
    supply_status_t status = supply__receive(supply, &supply->iterated, true);
    if (status != SUPPLY_OK) return status;
    const struct block *held = supply__blocks_at(&supply->blocks, &supply->pair, supply->iterated.sequence);
    status = find_columns(supply, held, &supply->datum_columns);
    if (status != SUPPLY_OK) {
        supply->broken = supply->failure;
        return status;
    }
    supply->iterating = true;
    supply->next_datum = 0;
    return SUPPLY_OK;
}

supply_status_t supply_next_datum(supply_t *supply, supply_datum_t *datum) {
    if (supply__check_open(supply) != SUPPLY_OK) return supply__check_open(supply);
    if (datum == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_next_datum: datum must not be NULL");
    /* The block stays held: its Datums that were not handed out are not consumed. */
    if (supply->broken.status != SUPPLY_OK) return supply__receive(supply, &supply->iterated, true);
    supply_status_t status = supply__check_mine(supply, "supply_next_datum");
    if (status != SUPPLY_OK) return status;
    if (!supply->iterating || supply->next_datum == supply->iterated.element_count) {
        status = advance(supply);
        const supply_datum_t end = {.epoch = supply->iterated.epoch};
        if (status == SUPPLY_END_OF_EPOCH) *datum = end;
        if (status != SUPPLY_OK) return status;
    }
    status = fill(supply, &supply->datum_columns, supply->iterated.epoch, supply->next_datum, datum);
    if (status == SUPPLY_OK)
        supply->next_datum++;
    else
        supply->broken = supply->failure;
    return status;
}

/**
 * Datums, by index or one after the other: seven columns of a block. What they need of the handle is which block the
 * iterator holds. Only the thread that uses the handle calls these functions.
 */
#include "supply_datum.h"

#include "api/handle.h"

enum { KEY, LABEL, CHANNELS, HEIGHT, WIDTH, ENCODED, DATA };
static const struct {
    const char *name;
    const char *format;
} parts[DATUM_COLUMNS] = {{"key", "z"},   {"label", "i"},   {"channels", "i"}, {"height", "i"},
                          {"width", "i"}, {"encoded", "b"}, {"data", "z"}};

static supply_status_t datum_find_columns(supply_t *supply, const supply_block_t *block) {
    if (supply->datum_block == block->sequence + 1) return SUPPLY_OK;
    for (int i = 0; i < DATUM_COLUMNS; i++) {
        supply_column_t *column = &supply->datum_columns[i];
        const supply_status_t status = supply_column_named(supply, block, parts[i].name, parts[i].format, column);
        if (status != SUPPLY_OK)
            return supply__fail(&supply->failure, status == SUPPLY_ERROR_NO_COLUMN ? SUPPLY_ERROR_CONTRACT : status,
                                "%s: the elements are no Datums", supply->failure.text);
        if (column->null_count != 0)
            return supply__fail(&supply->failure, SUPPLY_ERROR_CONTRACT, "%s: column '%s' holds nulls, a Datum's never",
                                supply->pair.name, column->name);
    }
    supply->datum_block = block->sequence + 1;
    return SUPPLY_OK;
}

supply_status_t supply__fail_by_changed_block(supply_t *supply) {
    return supply__fail(
        &supply->failure, SUPPLY_ERROR_CONTRACT,
        "%s: offsets or views of a block changed while it was held: is something else writing into the mapped "
        "file?",
        supply->pair.name);
}

static supply_status_t datum_fill(supply_t *supply, uint32_t epoch, uint32_t index, supply_datum_t *to) {
    const supply_column_t *column = supply->datum_columns;
    supply_datum_t datum = {.epoch = epoch};
    if (supply_value(&column[KEY], index, &datum.key, &datum.key_bytes) != SUPPLY_OK ||
        supply_value(&column[DATA], index, &datum.data, &datum.data_bytes) != SUPPLY_OK)
        return supply__fail_by_changed_block(supply);
    datum.label = ((const int32_t *)column[LABEL].data)[index];
    datum.channels = ((const int32_t *)column[CHANNELS].data)[index];
    datum.height = ((const int32_t *)column[HEIGHT].data)[index];
    datum.width = ((const int32_t *)column[WIDTH].data)[index];
    datum.encoded = ((const uint8_t *)column[ENCODED].data)[index / 8] >> index % 8 & 1;
    *to = datum;
    return SUPPLY_OK;
}

supply_status_t supply_datum(supply_t *supply, const supply_block_t *block, uint32_t index, supply_datum_t *datum) {
    TRY(supply__check_held(supply, "supply_datum", block, datum != NULL));
    TRY(datum_find_columns(supply, block));
    const uint32_t count = supply->datum_columns[KEY].element_count;
    if (index >= count)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_datum: no element %u in a block of %u",
                            index, count);
    return datum_fill(supply, block->epoch, index, datum);
}

/* Releases the iterator's block and receives the next one. */
static supply_status_t datum_advance(supply_t *supply) {
    if (supply->iterating) supply__release_block(supply, supply->iterated.sequence);
    supply->iterating = false;
    TRY(supply__receive(supply, &supply->iterated, true));
    supply_status_t status = datum_find_columns(supply, &supply->iterated);
    if (status != SUPPLY_OK) {
        supply->broken = supply->failure;
        return status;
    }
    supply->iterating = true;
    supply->next_datum = 0;
    return SUPPLY_OK;
}

supply_status_t supply_next_datum(supply_t *supply, supply_datum_t *datum) {
    TRY(supply__check_open(supply));
    if (datum == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_next_datum: datum must not be NULL");
    /* The block stays held: its Datums that were not handed out are not consumed. */
    if (supply->broken.status != SUPPLY_OK) return supply__receive(supply, &supply->iterated, true);
    supply_status_t status = supply__check_mine(supply, "supply_next_datum");
    if (status != SUPPLY_OK) return status;
    if (!supply->iterating || supply->next_datum == supply->iterated.element_count) {
        status = datum_advance(supply);
        const supply_datum_t end = {.epoch = supply->iterated.epoch};
        if (status == SUPPLY_END_OF_EPOCH) *datum = end;
        if (status != SUPPLY_OK) return status;
    }
    status = datum_fill(supply, supply->iterated.epoch, supply->next_datum, datum);
    if (status == SUPPLY_OK)
        supply->next_datum++;
    else
        supply->broken = supply->failure;
    return status;
}

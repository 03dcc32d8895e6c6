/**
 * Packs columns with children into values of any length. Offsets of a held block are read once and checked, because the
 * task may change them. Its caller has the exchange's lock.
 */
#include "children.h"

#include <stdlib.h>
#include <string.h>

#include "window.h"

struct packer {
    const struct schema *schema;
    const supply_column_t *tree; /* of the column's entries */
    uint32_t first;              /* the column's entry */
    uint8_t *bytes;
    size_t size, capacity;
    bool is_without_memory;
    bool has_changed;
};

/* Space for `count` more bytes; NULL: no memory. */
static uint8_t *pack_reserve(struct packer *packer, size_t count) {
    if (count > packer->capacity - packer->size) {
        const size_t capacity =
            2 * packer->capacity > packer->size + count ? 2 * packer->capacity : packer->size + count;
        uint8_t *grown = realloc(packer->bytes, capacity);
        packer->is_without_memory |= grown == NULL;
        if (grown == NULL) return NULL;
        packer->bytes = grown;
        packer->capacity = capacity;
    }
    uint8_t *space = packer->bytes + packer->size;
    packer->size += count;
    return space;
}

/* from NULL: zeros. */
static void pack_append(struct packer *packer, const void *from, size_t count) {
    uint8_t *to = count > 0 ? pack_reserve(packer, count) : NULL;
    if (to == NULL) return;
    if (from != NULL)
        memcpy(to, from, count);
    else
        memset(to, 0, count);
}

static void pack_append_number(struct packer *packer, uint32_t number) { pack_append(packer, &number, sizeof number); }

static void pack_text(struct packer *packer, const supply_column_t *column, uint32_t row) {
    const uint32_t bytes = exchange_value_bytes(column, row);
    const uint8_t *value = exchange_value(column, row, bytes);
    packer->has_changed |= value == NULL;
    pack_append_number(packer, value != NULL ? bytes : 0);
    if (value != NULL) pack_append(packer, value, bytes);
}

static void pack_rows(struct packer *packer, uint32_t entry, uint32_t from, uint32_t count, bool is_null);

// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static void pack_list(struct packer *packer, uint32_t entry, uint32_t row) {
    const supply_column_t *column = &packer->tree[entry - packer->first];
    const int32_t begin = SHARED_READ(column->offsets[row]), end = SHARED_READ(column->offsets[row + 1]);
    const bool is_valid = begin >= 0 && end >= begin && (uint32_t)end <= column[1].element_count;
    packer->has_changed |= !is_valid;
    pack_append_number(packer, is_valid ? (uint32_t)(end - begin) : 0);
    if (is_valid) pack_rows(packer, entry + 1, (uint32_t)begin, (uint32_t)(end - begin), false);
}

// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static void pack_value(struct packer *packer, uint32_t entry, uint32_t row, bool is_null) {
    const struct schema *schema = packer->schema;
    const struct format *format = &schema->formats[entry];
    const supply_column_t *column = &packer->tree[entry - packer->first];
    switch (format->layout) {
        case FORMAT_BITS:
            pack_append(packer, &(uint8_t){!is_null && (((const uint8_t *)column->data)[row / 8] >> row % 8 & 1)}, 1);
            break;
        case FORMAT_FIXED:
            pack_append(packer, is_null ? NULL : (const uint8_t *)column->data + (size_t)row * format->bytes,
                        format->bytes);
            break;
        case FORMAT_FIXED_LIST:
            pack_rows(packer, entry + 1, row * format->list_size, format->list_size, is_null);
            break;
        case FORMAT_STRUCT:
            for (uint32_t child = entry + 1; child < schema->ends[entry]; child = schema->ends[child])
                pack_rows(packer, child, row, 1, is_null);
            break;
        case FORMAT_LIST:
            if (is_null)
                pack_append_number(packer, 0);
            else
                pack_list(packer, entry, row);
            break;
        default:
            if (is_null)
                pack_append_number(packer, 0);
            else
                pack_text(packer, column, row);
    }
}

/* is_null: of what they belong to. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static void pack_rows(struct packer *packer, uint32_t entry, uint32_t from, uint32_t count, bool is_null) {
    const struct format *format = &packer->schema->formats[entry];
    const supply_column_t *column = &packer->tree[entry - packer->first];
    const bool is_nullable = (packer->schema->entries[entry].flags & COLUMN_NULLABLE) != 0;
    if (format->layout == FORMAT_FIXED && !is_nullable && !is_null) {
        pack_append(packer, (const uint8_t *)column->data + (size_t)from * format->bytes,
                    (size_t)count * format->bytes);
        return;
    }
    for (uint32_t i = 0; i < count && !packer->is_without_memory; i++) {
        const bool is_own_null = is_null || (is_nullable && exchange_is_null(column, from + i));
        if (is_nullable) pack_append(packer, &(uint8_t){!is_own_null}, 1);
        pack_value(packer, entry, from + i, is_own_null);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t pack_list_children(supply_t *pair, const supply_block_t *block, supply_column_t *column,
                                          supply_column_t **next, struct failure *failure) {
    for (int i = 0; i < column->child_count; i++) {
        supply_column_t *child = (*next)++;
        supply_status_t status = supply_column_child(pair, block, column, i, child);
        if (status != SUPPLY_OK) return supply__fail(failure, status, "%s", supply_error(pair));
        TRY(pack_list_children(pair, block, child, next, failure));
    }
    return SUPPLY_OK;
}

static supply_status_t pack_fail_to_pack(const struct packer *packer, const char *name, struct failure *failure) {
    if (packer->has_changed) return exchange_fail_by_change(failure);
    if (packer->is_without_memory)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory for the values of column '%s'", name);
    return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                        "column '%s' of a block has more than 2 GiB in an exchange: set a smaller block", name);
}

supply_status_t exchange_children_pack(supply_t *pair, const supply_block_t *block, const struct columns *columns,
                                       supply_column_t *column, struct failure *failure) {
    const struct schema *schema = &columns->whole;
    const uint32_t entry = column->entry, elements = column->element_count;
    supply_column_t *tree = calloc(schema->ends[entry] - entry, sizeof *tree), *next = tree + 1;
    int32_t *offsets = calloc((size_t)elements + 1, sizeof *offsets);
    struct packer packer = {.schema = schema, .tree = tree, .first = entry, .is_without_memory = !tree || !offsets};
    supply_status_t status = SUPPLY_OK;
    if (!packer.is_without_memory) {
        *tree = *column;
        status = pack_list_children(pair, block, tree, &next, failure);
    }
    for (uint32_t i = 0; i < elements && status == SUPPLY_OK && !packer.is_without_memory; i++) {
        pack_value(&packer, entry, i, exchange_is_null(column, i));
        if (packer.size > INT32_MAX) break;
        offsets[i + 1] = (int32_t)packer.size;
    }
    free(tree);
    if (status == SUPPLY_OK && (packer.is_without_memory || packer.has_changed || packer.size > INT32_MAX))
        status = pack_fail_to_pack(&packer, column->name, failure);
    if (status != SUPPLY_OK) {
        free(offsets);
        free(packer.bytes);
        return status;
    }
    column->offsets = offsets;
    column->data = packer.bytes;
    column->data_bytes = packer.size;
    return SUPPLY_OK;
}

void exchange_children_free(supply_column_t *column) {
    if (column->child_count == 0) return;
    free((void *)column->offsets);
    free((void *)column->data);
    column->child_count = 0;
}

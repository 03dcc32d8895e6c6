/**
 * Makes the buffers of columns with children again. Neighbours may write into the slot meanwhile, so a copy of it is
 * checked and read. Its caller has the exchange's lock.
 */
#include "children.h"

#include <stdlib.h>
#include <string.h>

#include "window.h"

/* The buffers of an entry. NULL: they are measured. */
struct buffers {
    uint8_t *validity, *data;
    int32_t *offsets;
    uint64_t elements, data_bytes, nulls;
};

/* The block as it has arrived, in memory of this rank alone. */
struct packed {
    uint8_t *bytes;
    size_t size;
    uint32_t elements;
};

struct unpacker {
    const struct schema *schema;
    struct buffers *buffers;    /* of the entries */
    struct block_column *table; /* of the entries, for the slot */
    const uint8_t *at, *end;
    bool is_broken; /* they are not what a rank packs */
};

/* The next bytes; NULL: there are not that many. */
static const uint8_t *unpack_take(struct unpacker *unpacker, uint64_t bytes) {
    const uint8_t *taken = unpacker->at;
    unpacker->is_broken |= bytes > (uint64_t)(unpacker->end - taken);
    if (unpacker->is_broken) return NULL;
    unpacker->at += bytes;
    return taken;
}

static uint32_t unpack_take_number(struct unpacker *unpacker) {
    uint32_t number = 0;
    const uint8_t *from = unpack_take(unpacker, sizeof number);
    if (from != NULL) memcpy(&number, from, sizeof number);
    return number;
}

static void unpack_set_bit(uint8_t *bits, uint64_t index, bool value) {
    if (bits != NULL && value) bits[index / 8] |= (uint8_t)(1 << index % 8);
}

static void unpack_add_data(struct buffers *buffers, const uint8_t *from, uint64_t bytes) {
    if (buffers->data != NULL && from != NULL) memcpy(buffers->data + buffers->data_bytes, from, bytes);
    buffers->data_bytes += bytes;
}

static void unpack_rows(struct unpacker *unpacker, uint32_t entry, uint32_t count);

/* The value of element `index`; the entry counts it already. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static void unpack_value(struct unpacker *unpacker, uint32_t entry, uint64_t index) {
    const struct schema *schema = unpacker->schema;
    const struct format *format = &schema->formats[entry];
    struct buffers *buffers = &unpacker->buffers[entry];
    const uint8_t *from;
    uint32_t count;
    switch (format->layout) {
        case FORMAT_BITS:
            from = unpack_take(unpacker, 1);
            unpack_set_bit(buffers->data, index, from != NULL && (*from & 1) != 0);
            break;
        case FORMAT_FIXED:
            unpack_add_data(buffers, unpack_take(unpacker, format->bytes), format->bytes);
            break;
        case FORMAT_FIXED_LIST:
            unpack_rows(unpacker, entry + 1, format->list_size);
            break;
        case FORMAT_STRUCT:
            for (uint32_t child = entry + 1; child < schema->ends[entry]; child = schema->ends[child])
                unpack_rows(unpacker, child, 1);
            break;
        case FORMAT_LIST:
            count = unpack_take_number(unpacker);
            unpack_rows(unpacker, entry + 1, count);
            if (buffers->offsets != NULL) buffers->offsets[index + 1] = (int32_t)unpacker->buffers[entry + 1].elements;
            break;
        default:
            count = unpack_take_number(unpacker);
            unpack_add_data(buffers, unpack_take(unpacker, count), count);
            if (buffers->offsets != NULL) buffers->offsets[index + 1] = (int32_t)buffers->data_bytes;
    }
}

// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static void unpack_rows(struct unpacker *unpacker, uint32_t entry, uint32_t count) {
    const struct format *format = &unpacker->schema->formats[entry];
    struct buffers *buffers = &unpacker->buffers[entry];
    const bool is_nullable = (unpacker->schema->entries[entry].flags & COLUMN_NULLABLE) != 0;
    unpacker->is_broken |= buffers->elements + count > INT32_MAX;
    if (unpacker->is_broken) return;
    if (format->layout == FORMAT_FIXED && !is_nullable) {
        buffers->elements += count;
        unpack_add_data(buffers, unpack_take(unpacker, (uint64_t)count * format->bytes),
                        (uint64_t)count * format->bytes);
        return;
    }
    for (uint32_t i = 0; i < count && !unpacker->is_broken; i++) {
        const uint64_t index = buffers->elements++;
        const uint8_t *valid = is_nullable ? unpack_take(unpacker, 1) : NULL;
        const bool is_null = valid != NULL && (*valid & 1) == 0;
        unpack_set_bit(buffers->validity, index, !is_null);
        buffers->nulls += is_null;
        unpack_value(unpacker, entry, index);
    }
}

static bool unpack_is_within(const struct packed *packed, uint32_t offset, uint32_t bytes) {
    return offset <= packed->size && bytes <= packed->size - offset;
}

static bool unpack_has_buffers(const struct packed *packed, const struct block_column *column) {
    return unpack_is_within(packed, column->validity_offset, column->validity_bytes) &&
           unpack_is_within(packed, column->offsets_offset, column->offsets_bytes) &&
           unpack_is_within(packed, column->data_offset, column->data_bytes);
}

/* Whether the values that were packed lie within the data. */
static bool unpack_has_values(const struct packed *packed, const struct block_column *column) {
    const int32_t *offsets = (const int32_t *)(packed->bytes + column->offsets_offset);
    if (column->offsets_offset % sizeof *offsets != 0 ||
        column->offsets_bytes / sizeof *offsets != (size_t)packed->elements + 1 || offsets[0] < 0)
        return false;
    for (uint32_t i = 0; i < packed->elements; i++)
        if (offsets[i + 1] < offsets[i]) return false;
    return (uint32_t)offsets[packed->elements] <= column->data_bytes;
}

/* All elements of a column: their packed values lie one after the other. False: they are not what a rank packs. */
static bool unpack_column(struct unpacker *unpacker, uint32_t entry, const struct packed *packed,
                          const struct block_column *column) {
    const int32_t *offsets = (const int32_t *)(packed->bytes + column->offsets_offset);
    const uint8_t *data = packed->bytes + column->data_offset;
    for (uint32_t i = entry; i < unpacker->schema->ends[entry]; i++)
        unpacker->buffers[i].elements = unpacker->buffers[i].data_bytes = unpacker->buffers[i].nulls = 0;
    for (uint32_t i = 0; i < packed->elements && !unpacker->is_broken; i++) {
        unpacker->at = data + offsets[i];
        unpacker->end = data + offsets[i + 1];
        unpack_value(unpacker, entry, unpacker->buffers[entry].elements++);
        unpacker->is_broken |= unpacker->at != unpacker->end;
    }
    return !unpacker->is_broken;
}

/* Takes the next bytes of the slot for a buffer. Returns their offset; 0: there are not that many. */
static uint32_t unpack_add_buffer(const struct slot *slot, size_t *end, uint64_t bytes) {
    const size_t at = *end;
    if (bytes > slot->bytes - at || supply__aligned((size_t)bytes) > slot->bytes - at) return 0;
    *end += supply__aligned((size_t)bytes);
    return (uint32_t)at;
}

/* Copies a buffer of the packed block. False: the slot is full. */
static bool unpack_copy_buffer(const struct slot *slot, size_t *end, const struct packed *packed, uint32_t from,
                               uint32_t bytes, uint32_t *offset) {
    *offset = unpack_add_buffer(slot, end, bytes);
    if (*offset != 0 && bytes > 0) memcpy(slot->address + *offset, packed->bytes + from, bytes);
    return *offset != 0;
}

static bool unpack_copy_column(const struct slot *slot, size_t *end, const struct packed *packed,
                               const struct block_column *from, struct block_column *to) {
    *to = *from;
    return unpack_copy_buffer(slot, end, packed, from->validity_offset, from->validity_bytes, &to->validity_offset) &&
           unpack_copy_buffer(slot, end, packed, from->offsets_offset, from->offsets_bytes, &to->offsets_offset) &&
           unpack_copy_buffer(slot, end, packed, from->data_offset, from->data_bytes, &to->data_offset);
}

/* Takes the buffers of a measured entry, filled with zeros. False: the slot is full. */
static bool unpack_arrange_entry(const struct slot *slot, size_t *end, const struct format *format, bool is_child,
                                 struct buffers *buffers, struct block_column *column) {
    /* Views have become bytes. */
    const bool has_offsets = supply__has_offsets(format) || format->layout == FORMAT_VIEWS;
    const uint64_t bits = (buffers->elements + 7) / 8;
    if (is_child) {
        column->null_count = (uint32_t)buffers->nulls;
        column->validity_bytes = buffers->nulls > 0 ? (uint32_t)bits : 0;
        column->validity_offset = unpack_add_buffer(slot, end, column->validity_bytes);
    }
    column->offsets_bytes = has_offsets ? (uint32_t)((buffers->elements + 1) * sizeof(int32_t)) : 0;
    column->offsets_offset = unpack_add_buffer(slot, end, column->offsets_bytes);
    column->data_bytes = (uint32_t)(format->layout == FORMAT_BITS ? bits : buffers->data_bytes);
    column->data_offset = unpack_add_buffer(slot, end, column->data_bytes);
    if ((is_child && column->validity_offset == 0) || column->offsets_offset == 0 || column->data_offset == 0)
        return false;
    buffers->validity = is_child && buffers->nulls > 0 ? slot->address + column->validity_offset : NULL;
    buffers->offsets = has_offsets ? (int32_t *)(slot->address + column->offsets_offset) : NULL;
    buffers->data = slot->address + column->data_offset;
    if (buffers->validity != NULL) memset(buffers->validity, 0, column->validity_bytes);
    if (has_offsets) buffers->offsets[0] = 0;
    if (format->layout == FORMAT_BITS) memset(buffers->data, 0, column->data_bytes);
    return true;
}

/* Measures a column with children, arranges it, and fills it. False: it is not what a rank packs. */
static bool unpack_make_column(struct unpacker *unpacker, const struct slot *slot, size_t *end, uint32_t entry,
                               const struct packed *packed, const struct block_column *from) {
    const struct schema *schema = unpacker->schema;
    struct block_column *table = unpacker->table;
    if (!unpack_has_values(packed, from) || !unpack_column(unpacker, entry, packed, from)) return false;
    table[entry].null_count = from->null_count;
    table[entry].validity_bytes = from->validity_bytes;
    if (!unpack_copy_buffer(slot, end, packed, from->validity_offset, from->validity_bytes,
                            &table[entry].validity_offset))
        return false;
    for (uint32_t i = entry; i < schema->ends[entry]; i++)
        if (!unpack_arrange_entry(slot, end, &schema->formats[i], i > entry, &unpacker->buffers[i], &table[i]))
            return false;
    return unpack_column(unpacker, entry, packed, from);
}

static bool unpack_unpack(struct unpacker *unpacker, const struct slot *slot, const struct packed *packed,
                          size_t *bytes) {
    const struct schema *schema = unpacker->schema;
    const struct block_column *from = (const struct block_column *)(packed->bytes + sizeof(struct block_header));
    struct block_column *table = unpacker->table;
    size_t end = supply__block_header_bytes(schema->count);
    for (uint32_t i = 0; i < schema->column_count; i++) {
        const uint32_t entry = supply__schema_entry(schema, i);
        const bool is_whole =
            unpack_has_buffers(packed, &from[i]) &&
            (schema->entries[entry].children == 0 ? unpack_copy_column(slot, &end, packed, &from[i], &table[entry])
                                                  : unpack_make_column(unpacker, slot, &end, entry, packed, &from[i]));
        if (!is_whole) return false;
    }
    memcpy(slot->address + sizeof(struct block_header), table, schema->count * sizeof *table);
    *bytes = end;
    return true;
}

supply_status_t exchange_children_unpack(const struct columns *columns, const struct slot *slot, uint32_t elements,
                                         size_t *bytes, struct failure *failure) {
    const struct schema *schema = &columns->whole;
    if (schema->count == schema->column_count) return SUPPLY_OK;
    struct unpacker unpacker = {.schema = schema,
                                .buffers = calloc(schema->count, sizeof *unpacker.buffers),
                                .table = calloc(schema->count, sizeof *unpacker.table)};
    const struct packed packed = {.bytes = malloc(*bytes), .size = *bytes, .elements = elements};
    supply_status_t status = SUPPLY_OK;
    if (packed.bytes == NULL || unpacker.buffers == NULL || unpacker.table == NULL) {
        status = supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory for a copy of a block of %zu bytes", *bytes);
    } else {
        memcpy(packed.bytes, slot->address, *bytes);
        if (!unpack_unpack(&unpacker, slot, &packed, bytes))
            status = supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                  "another rank has sent values that do not belong to the columns");
    }
    free(packed.bytes);
    free(unpacker.buffers);
    free(unpacker.table);
    return status;
}

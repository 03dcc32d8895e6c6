#include "block_column.h"

#include <inttypes.h>

struct check {
    const struct block *block;
    const struct schema_entry *entry;
    uint32_t buffers_offset; /* where the first buffer may begin */
    struct failure *failure;
};

static supply_status_t fail(const struct check *check, const char *field, uint64_t is, const char *must, uint64_t be) {
    return supply_fail(check->failure, SUPPLY_ERROR_CONTRACT, "column '%s': %s is %" PRIu64 ", must be %s %" PRIu64,
                       check->entry->name, field, is, must, be);
}

static supply_status_t check_place(const struct check *check, const char *field, uint32_t offset, uint32_t bytes) {
    uint64_t size = check->block->notification.size;
    if (offset % BUFFER_ALIGNMENT != 0) return fail(check, field, offset, "a multiple of", BUFFER_ALIGNMENT);
    /* Nobody reads an empty buffer: its offset does not matter. */
    if (bytes > 0 && offset < check->buffers_offset)
        return fail(check, field, offset, "at least", check->buffers_offset);
    if (offset > size || bytes > size - offset)
        return fail(check, field, offset, "with its bytes within the block's size of", size);
    return SUPPLY_OK;
}

static supply_status_t check_validity(const struct check *check, const struct block_column *column) {
    uint32_t elements = check->block->notification.element_count;
    uint32_t bitmap_bytes = elements / 8 + (elements % 8 != 0);
    if (column->validity_bytes == 0) {
        if (column->null_count != 0) return fail(check, "null_count", column->null_count, "without a bitmap", 0);
        return SUPPLY_OK;
    }
    if (column->validity_bytes != bitmap_bytes)
        return fail(check, "validity_bytes", column->validity_bytes, "0 or", bitmap_bytes);
    if (column->null_count > elements) return fail(check, "null_count", column->null_count, "at most", elements);
    return check_place(check, "validity_offset", column->validity_offset, column->validity_bytes);
}

static supply_status_t check_offsets(const struct check *check, const struct block_column *column) {
    uint64_t elements = check->block->notification.element_count;
    if (column->offsets_bytes != (elements + 1) * sizeof(int32_t))
        return fail(check, "offsets_bytes", column->offsets_bytes, "exactly", (elements + 1) * sizeof(int32_t));
    supply_status_t status = check_place(check, "offsets_offset", column->offsets_offset, column->offsets_bytes);
    if (status != SUPPLY_OK) return status;

    const int32_t *offsets = (const int32_t *)(check->block->address + column->offsets_offset);
    int32_t before = 0;
    bool decreasing = false;
    for (uint64_t i = 0; i <= elements; i++) {
        int32_t offset = offsets[i];
        decreasing |= offset < before;
        before = offset;
    }
    if (decreasing)
        return supply_fail(check->failure, SUPPLY_ERROR_CONTRACT,
                           "column '%s': offsets must begin at 0 or above and never decrease", check->entry->name);
    if ((uint32_t)before != column->data_bytes)
        return fail(check, "the last of its offsets", (uint32_t)before, "data_bytes, which is", column->data_bytes);
    return SUPPLY_OK;
}

static supply_status_t check_data_bytes(const struct check *check, const struct block_column *column,
                                        uint64_t expected) {
    if (column->data_bytes != expected) return fail(check, "data_bytes", column->data_bytes, "exactly", expected);
    return SUPPLY_OK;
}

static supply_status_t check_fixed(const struct check *check, const struct block_column *column, uint64_t expected) {
    if (column->offsets_bytes != 0) return fail(check, "offsets_bytes", column->offsets_bytes, "for this format", 0);
    return check_data_bytes(check, column, expected);
}

/* Where the windows and views are; supply_block_views_check() checks what they say. */
static supply_status_t check_windows(const struct check *check, const struct block_column *column) {
    if (column->offsets_bytes % sizeof(struct window) != 0)
        return fail(check, "offsets_bytes", column->offsets_bytes, "a multiple of", sizeof(struct window));
    supply_status_t status = check_place(check, "offsets_offset", column->offsets_offset, column->offsets_bytes);
    if (status != SUPPLY_OK) return status;
    return check_data_bytes(check, column, check->block->notification.element_count * sizeof(struct view));
}

supply_status_t supply_block_column_check(const struct block *block, const struct block_column *column,
                                          const struct schema_entry *entry, uint32_t buffers_offset,
                                          struct failure *failure) {
    const struct check check = {block, entry, buffers_offset, failure};
    const uint64_t elements = block->notification.element_count;
    const struct format format = supply_schema_format(entry);
    supply_status_t status = SUPPLY_OK;
    switch (format.layout) {
        /* supply_column() refuses this column by name. The other columns stay readable. */
        case FORMAT_UNKNOWN:
            return SUPPLY_OK;
        case FORMAT_BITS:
            status = check_fixed(&check, column, elements / 8 + (elements % 8 != 0));
            break;
        case FORMAT_FIXED:
            status = check_fixed(&check, column, elements * format.bytes);
            break;
        case FORMAT_VARIABLE:
            status = check_offsets(&check, column);
            break;
        case FORMAT_VIEWS:
            status = check_windows(&check, column);
            break;
    }
    if (status == SUPPLY_OK) status = check_validity(&check, column);
    if (status == SUPPLY_OK) status = check_place(&check, "data_offset", column->data_offset, column->data_bytes);
    return status;
}

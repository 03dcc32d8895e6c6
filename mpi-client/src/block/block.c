/**
 * R3: checks a notification, its block and each column, in the ring or in a resident file, and keeps what it has
 * checked in this process's own memory. It runs in the thread that receives, without the lock, because it may wait for
 * a disk.
 */
#include "block/block.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/shared.h"
#include "block/schema.h"

struct check {
    const struct block *block;
    const char *name;
    uint64_t elements;       /* of the entry */
    uint32_t buffers_offset; /* where the first buffer may begin */
    struct failure *failure;
};

static supply_status_t fail(const struct check *check, const char *field, uint64_t is, const char *must, uint64_t be) {
    return supply__fail(check->failure, SUPPLY_ERROR_CONTRACT, "column '%s': %s is %" PRIu64 ", must be %s %" PRIu64,
                        check->name, field, is, must, be);
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
    const uint64_t elements = check->elements, bitmap_bytes = elements / 8 + (elements % 8 != 0);
    if (column->validity_bytes == 0) {
        if (column->null_count != 0) return fail(check, "null_count", column->null_count, "without a bitmap", 0);
        return SUPPLY_OK;
    }
    if (column->validity_bytes != bitmap_bytes)
        return fail(check, "validity_bytes", column->validity_bytes, "0 or", bitmap_bytes);
    if (column->null_count > elements) return fail(check, "null_count", column->null_count, "at most", elements);
    return check_place(check, "validity_offset", column->validity_offset, column->validity_bytes);
}

/* *last: the last offset. */
static supply_status_t check_offsets(const struct check *check, const struct block_column *column, uint32_t *last) {
    const uint64_t elements = check->elements;
    if (column->offsets_bytes != (elements + 1) * sizeof(int32_t))
        return fail(check, "offsets_bytes", column->offsets_bytes, "exactly", (elements + 1) * sizeof(int32_t));
    TRY(check_place(check, "offsets_offset", column->offsets_offset, column->offsets_bytes));
    const int32_t *offsets = (const int32_t *)(check->block->address + column->offsets_offset);
    if (!supply__offsets_copy(offsets, elements, NULL, last))
        return supply__fail(check->failure, SUPPLY_ERROR_CONTRACT,
                            "column '%s': offsets must begin at 0 or above and never decrease", check->name);
    return SUPPLY_OK;
}

/* What the format says of data and offsets. *children: how many elements each child of the entry has. */
static supply_status_t check_layout(const struct check *check, const struct block_column *column,
                                    const struct format *format, uint64_t *children) {
    const uint64_t elements = check->elements;
    uint64_t data_bytes = 0;
    uint32_t last = 0;
    switch (format->layout) {
        case FORMAT_VARIABLE:
            TRY(check_offsets(check, column, &last));
            if (last == column->data_bytes) return SUPPLY_OK;
            return fail(check, "the last of its offsets", last, "data_bytes, which is", column->data_bytes);
        case FORMAT_LIST:
            TRY(check_offsets(check, column, &last));
            *children = last;
            break;
        case FORMAT_VIEWS:
            /* Where the windows and views are; supply__block_views_check() checks what they say. */
            if (column->offsets_bytes % sizeof(struct window) != 0)
                return fail(check, "offsets_bytes", column->offsets_bytes, "a multiple of", sizeof(struct window));
            TRY(check_place(check, "offsets_offset", column->offsets_offset, column->offsets_bytes));
            data_bytes = elements * sizeof(struct view);
            break;
        default:
            if (column->offsets_bytes != 0)
                return fail(check, "offsets_bytes", column->offsets_bytes, "for this format", 0);
            if (format->layout == FORMAT_BITS) data_bytes = elements / 8 + (elements % 8 != 0);
            if (format->layout == FORMAT_FIXED) data_bytes = elements * format->bytes;
            *children = format->layout == FORMAT_FIXED_LIST ? elements * format->list_size : elements;
    }
    if (column->data_bytes == data_bytes) return SUPPLY_OK;
    return fail(check, "data_bytes", column->data_bytes, "exactly", data_bytes);
}

/* SUPPLY_OK, or _CONTRACT with the wrong field. Fills in the elements of the entry's children. */
static supply_status_t check_entry(struct block *block, const struct schema *schema, uint32_t index,
                                   uint32_t buffers_offset, struct failure *failure) {
    /* supply_column() refuses it by name. The other columns stay readable. */
    if (schema->formats[index].layout == FORMAT_UNKNOWN) return SUPPLY_OK;
    const struct block_column *column = &block->columns[index];
    const struct check check = {block, supply__schema_name(schema, index), block->elements[index], buffers_offset,
                                failure};
    uint64_t children = 0;
    TRY(check_layout(&check, column, &schema->formats[index], &children));
    TRY(check_validity(&check, column));
    TRY(check_place(&check, "data_offset", column->data_offset, column->data_bytes));
    if (schema->ends[index] > index + 1 && children > INT32_MAX)
        return fail(&check, "the number of its children's elements", children, "at most", INT32_MAX);
    for (uint32_t child = index + 1; child < schema->ends[index]; child = schema->ends[child])
        block->elements[child] = (uint32_t)children;
    return SUPPLY_OK;
}

supply_status_t supply__blocks_allocate(struct blocks *blocks, const struct pair *pair, struct failure *failure) {
    *blocks = (struct blocks){.foreign_files.group = pair->settings.group};
    blocks->slots = calloc(pair->settings.block_count, sizeof *blocks->slots);
    return blocks->slots ? SUPPLY_OK : supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", pair->name);
}

void supply__blocks_free(struct blocks *blocks) {
    for (size_t i = 0; i < blocks->windows_count; i++) free(blocks->windows[i].list);
    supply__schema_free(&blocks->schema);
    free(blocks->windows);
    free(blocks->elements);
    free(blocks->columns);
    free(blocks->slots);
    *blocks = (struct blocks){0};
}

static bool has_views(const struct schema *schema) {
    for (uint32_t i = 0; i < schema->count; i++)
        if (schema->formats[i].layout == FORMAT_VIEWS) return true;
    return false;
}

/* What was allocated before a failure is freed with the blocks. */
static bool allocate_columns(struct blocks *blocks, uint32_t block_count, const struct schema *schema) {
    const size_t count = (size_t)block_count * schema->count;
    free(blocks->columns);
    free(blocks->elements);
    blocks->columns = calloc(count, sizeof *blocks->columns);
    blocks->elements = calloc(count, sizeof *blocks->elements);
    if (blocks->columns == NULL || blocks->elements == NULL) return false;
    if (has_views(schema)) {
        blocks->windows = calloc(count, sizeof *blocks->windows);
        if (blocks->windows == NULL) return false;
        blocks->windows_count = count;
    }
    for (uint32_t i = 0; i < block_count; i++) {
        blocks->slots[i].columns = blocks->columns + (size_t)i * schema->count;
        blocks->slots[i].elements = blocks->elements + (size_t)i * schema->count;
        blocks->slots[i].windows = blocks->windows ? blocks->windows + (size_t)i * schema->count : NULL;
    }
    return true;
}

supply_status_t supply__blocks_learn_schema(struct blocks *blocks, const struct pair *pair, struct failure *failure) {
    if (blocks->schema.count != 0) return SUPPLY_OK;
    struct schema schema;
    TRY(supply__schema_read(&schema, &pair->mapped_file, failure));
    if (!allocate_columns(blocks, pair->settings.block_count, &schema)) {
        supply__schema_free(&schema);
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", pair->name);
    }
    blocks->schema = schema;
    blocks->buffers_offset = (uint32_t)supply__block_header_bytes(schema.count);
    return SUPPLY_OK;
}

static supply_status_t check_notification(const struct pair *pair, const struct notification *notification,
                                          struct failure *failure) {
    if (notification->sequence != pair->expected)
        return supply__fail_by_number(failure, "notification.sequence", notification->sequence, "the next,",
                                      pair->expected);
    /*
     * In this order: a thread that releases meanwhile lets the task publish more. Another thread reads blocks[slot]
     * when it consumes the earlier block. This thread writes blocks[slot] below.
     */
    const uint64_t published = __atomic_load_n(&pair->mapped_file.header->published, __ATOMIC_ACQUIRE);
    const uint64_t most = __atomic_load_n(&pair->credited, __ATOMIC_ACQUIRE) + pair->settings.block_count;
    if (published <= notification->sequence)
        return supply__fail_by_number(failure, "published", published, "above notification.sequence, which is",
                                      notification->sequence);
    if (published > most)
        return supply__fail_by_number(failure, "published", published, "at most released + block_count, which is",
                                      most);
    if (notification->size < sizeof(struct block_header))
        return supply__fail_by_number(failure, "notification.size", notification->size, "at least",
                                      sizeof(struct block_header));
    bool is_block = notification->kind == NOTIFICATION_BLOCK;
    if (is_block && notification->element_count == 0)
        return supply__fail_by_number(failure, "notification.element_count", 0, "at least", 1);
    if (!is_block && notification->element_count != 0)
        return supply__fail_by_number(failure, "notification.element_count", notification->element_count, "at an end,",
                                      0);
    if (!is_block && notification->file != 0)
        return supply__fail_by_number(failure, "notification.file", notification->file, "at an end,", 0);
    return SUPPLY_OK;
}

#define NOTIFICATION_FIELD(field)                                                                                      \
    {#field, offsetof(struct notification, field), sizeof((struct notification *)0)->field}

static const struct {
    const char *name;
    size_t offset;
    size_t bytes;
} notification_fields[] = {
    NOTIFICATION_FIELD(generation),    NOTIFICATION_FIELD(kind),     NOTIFICATION_FIELD(element_count),
    NOTIFICATION_FIELD(sequence),      NOTIFICATION_FIELD(epoch),    NOTIFICATION_FIELD(partition),
    NOTIFICATION_FIELD(first_element), NOTIFICATION_FIELD(offset),   NOTIFICATION_FIELD(size),
    NOTIFICATION_FIELD(file),          NOTIFICATION_FIELD(reserved),
};

supply_status_t supply__notification_check_copy(const struct notification *notification, const void *shared,
                                                struct failure *failure) {
    struct notification copy;
    memcpy(&copy, shared, sizeof copy);
    for (size_t i = 0; i < sizeof notification_fields / sizeof *notification_fields; i++) {
        const size_t offset = notification_fields[i].offset;
        if (memcmp((const uint8_t *)notification + offset, (const uint8_t *)&copy + offset,
                   notification_fields[i].bytes) != 0)
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                "block_header.notification.%s is not that of the notification",
                                notification_fields[i].name);
    }
    return SUPPLY_OK;
}

/* Linux 4.14, which not every glibc knows. */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

#define READ_AHEAD_BYTES_MAX ((uint64_t)8 << 20)

/* The notification of a number that may be published. It is only a hint: the task may change it, R3 checks it later. */
static bool peek(const struct pair *pair, uint64_t sequence, struct notification *next) {
    if (__atomic_load_n(&pair->mapped_file.header->published, __ATOMIC_ACQUIRE) <= sequence) return false;
    memcpy(next, pair->mapped_file.address + supply__ring_slot_offset(&pair->settings, sequence), sizeof *next);
    return next->sequence == sequence;
}

/*
 * The kernel itself reads ahead within a partition. MADV_SEQUENTIAL would slow that down: 1.0 instead of 1.5 GB/s, with
 * blocks of 8 MiB and a quarter of the file in memory.
 */
static bool follows(const struct resident_file *file, const struct notification *next,
                    const struct notification *received) {
    return next->file == received->file && next->offset == received->offset + file->block_bytes;
}

/* Most blocks in the kernel's cache are there as a whole. For them the advice would cost a fifth of reading them. */
static bool is_cached(int fd, uint64_t offset) {
    /* mincore() says so of every file that this user neither owns nor may write. */
    char byte;
    const struct iovec to = {&byte, sizeof byte};
    return preadv2(fd, &to, 1, (off_t)offset, RWF_NOWAIT) == sizeof byte;
}

/* Has the kernel read the next published block of a resident file, unless it follows the received one there. */
static void read_ahead(const struct blocks *blocks, const struct pair *pair, const struct notification *received) {
    struct notification next;
    if (blocks->foreign_files.opened == 0) return;
    if (!peek(pair, received->sequence + 1, &next) || next.file == 0 || next.file > FOREIGN_FILES_MAX) return;
    const struct resident_file *file = &blocks->resident_files[next.file - 1];
    if (file->mapping == NULL || next.offset >= file->mapping->entry.file_bytes || follows(file, &next, received))
        return;
    uint64_t bytes = file->mapping->entry.file_bytes - next.offset;
    if (bytes > next.size) bytes = next.size;
    if (bytes > READ_AHEAD_BYTES_MAX) bytes = READ_AHEAD_BYTES_MAX;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t begin = next.offset / page * page, end = next.offset + bytes;
    if (end == begin || is_cached(file->mapping->fd, end - 1)) return;
    madvise((void *)(file->mapping->address + begin), end - begin, MADV_WILLNEED);
}

/* The resident file that the notification names, checked when it is named first. */
static supply_status_t find_file(struct blocks *blocks, const struct pair *pair, uint32_t number,
                                 const struct resident_file **found, struct failure *failure) {
    const struct foreign_file_mapping *mapping;
    TRY(supply__foreign_files_find(&blocks->foreign_files, pair->mapped_file.header, number, &supply__foreign_blocks,
                                   &mapping, failure));
    TRY(supply__blocks_learn_schema(blocks, pair, failure));
    struct resident_file *file = &blocks->resident_files[number - 1];
    *found = file;
    if (file->mapping != NULL) return SUPPLY_OK;
    return supply__resident_file_open(file, mapping, pair, &blocks->schema, failure);
}

/*
 * Where the block lies, after the checks of its place: in the ring, or in a resident file. Then the slot of its number
 * has only the copy of the notification.
 */
static supply_status_t find_block(struct blocks *blocks, const struct pair *pair,
                                  const struct notification *notification, const uint8_t **address,
                                  struct failure *failure) {
    const uint64_t slot = supply__ring_slot_offset(&pair->settings, notification->sequence);
    if (notification->file == 0 && notification->offset != slot)
        return supply__fail_by_number(failure, "notification.offset", notification->offset, "that of its slot,", slot);
    if (notification->file == 0 && notification->size > pair->settings.block_bytes)
        return supply__fail_by_number(failure, "notification.size", notification->size, "at most block_bytes,",
                                      pair->settings.block_bytes);
    *address = pair->mapped_file.address + slot;
    TRY(supply__notification_check_copy(notification, *address, failure));
    TRY(supply__foreign_files_check(&blocks->foreign_files, failure));
    if (notification->file == 0) return SUPPLY_OK;
    const struct resident_file *file;
    TRY(find_file(blocks, pair, notification->file, &file, failure));
    *address = file->mapping->address + notification->offset;
    return supply__resident_file_check_block(file, notification, failure);
}

static supply_status_t check_views(struct blocks *blocks, const struct pair *pair, struct block *block, uint32_t index,
                                   struct failure *failure) {
    const struct block_column *column = &block->columns[index];
    const struct block_views views = {
        .windows = (const struct window *)(block->address + column->offsets_offset),
        .views = (const struct view *)(block->address + column->data_offset),
        .window_count = column->offsets_bytes / (uint32_t)sizeof(struct window),
        .element_count = block->elements[index],
    };
    supply_status_t status = supply__block_views_check(&block->windows[index], &views, &blocks->foreign_files,
                                                       pair->mapped_file.header, failure);
    if (status == SUPPLY_ERROR_CONTRACT)
        supply__fail(failure, status, "column '%s': %s", supply__schema_name(&blocks->schema, index), failure->text);
    if (status == SUPPLY_ERROR_MEMORY) supply__fail(failure, status, "%s: %s", pair->name, failure->text);
    return status;
}

/* The header of the block, and its columns; an end has none. */
static supply_status_t check_columns(struct blocks *blocks, const struct pair *pair, struct block *block,
                                     struct failure *failure) {
    struct block_header header;
    memcpy(&header, block->address, sizeof header);
    block->referenced_bytes = header.referenced_bytes;
    const bool is_block = block->notification.kind == NOTIFICATION_BLOCK;
    if (!is_block && header.column_count != 0)
        return supply__fail_by_number(failure, "block_header.column_count", header.column_count, "at an end,", 0);
    if (!is_block) return SUPPLY_OK;
    TRY(supply__blocks_learn_schema(blocks, pair, failure));
    const struct schema *schema = &blocks->schema;
    if (header.column_count != schema->count)
        return supply__fail_by_number(failure, "block_header.column_count", header.column_count, "that of the schema,",
                                      schema->count);
    if (block->notification.size < blocks->buffers_offset)
        return supply__fail_by_number(failure, "notification.size", block->notification.size,
                                      "at least, with its columns,", blocks->buffers_offset);
    memcpy(block->columns, block->address + sizeof header, schema->count * sizeof *block->columns);
    for (uint32_t i = 0; i < schema->column_count; i++)
        block->elements[schema->columns[i]] = block->notification.element_count;
    for (uint32_t i = 0; i < schema->count; i++) {
        TRY(check_entry(block, schema, i, blocks->buffers_offset, failure));
        if (schema->formats[i].layout == FORMAT_VIEWS) TRY(check_views(blocks, pair, block, i, failure));
    }
    return SUPPLY_OK;
}

supply_status_t supply__block_check(struct blocks *blocks, const struct pair *pair,
                                    const struct notification *notification, struct failure *failure) {
    struct block *block = supply__blocks_at(blocks, pair, notification->sequence);
    supply_status_t status = check_notification(pair, notification, failure);
    if (status == SUPPLY_OK) status = find_block(blocks, pair, notification, &block->address, failure);
    if (status == SUPPLY_OK) {
        block->notification = *notification;
        status = check_columns(blocks, pair, block, failure);
    }
    if (status == SUPPLY_OK) read_ahead(blocks, pair, notification);
    if (status == SUPPLY_ERROR_CONTRACT)
        supply__fail(failure, status, "%s: the task broke the contract in block %" PRIu64 ": %s", pair->name,
                     pair->expected, failure->text);
    if (status == SUPPLY_ERROR_SYSTEM) {
        /* supply__fail() takes it from there. */
        errno = failure->error;
        supply__fail(failure, status, "%s: %s", pair->name, failure->text);
    }
    return status;
}

supply_status_t supply__block_column(const struct blocks *blocks, const struct pair *pair, uint64_t sequence,
                                     uint32_t index, supply_column_t *column, struct failure *failure) {
    const struct block *block = supply__blocks_at(blocks, pair, sequence);
    const struct schema *schema = &blocks->schema;
    const struct schema_entry *entry = &schema->entries[index];
    const struct block_column *from = &block->columns[index];
    const struct format format = schema->formats[index];
    if (format.layout == FORMAT_UNKNOWN)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                            "%s: column '%s' has format '%s', which libsupply %s (contract %s) does not know: a newer "
                            "one may",
                            pair->name, supply__schema_name(schema, index), entry->format, supply_version(),
                            supply_contract_version());
    *column = (supply_column_t){
        .name = supply__schema_name(schema, index),
        .format = entry->format,
        .element_count = block->elements[index],
        .null_count = from->null_count,
        .validity = from->validity_bytes ? block->address + from->validity_offset : NULL,
        .data = block->address + from->data_offset,
        .data_bytes = from->data_bytes,
        .child_format = supply__schema_child_format(schema, index),
        .child_count = (int)entry->children,
        .entry = index,
    };
    if (format.layout == FORMAT_VARIABLE || format.layout == FORMAT_LIST)
        column->offsets = (const int32_t *)(block->address + from->offsets_offset);
    if (format.layout == FORMAT_LIST || format.layout == FORMAT_FIXED_LIST) {
        /* The place of a child of an unknown format is not checked. */
        const bool is_known = schema->formats[index + 1].layout != FORMAT_UNKNOWN;
        const struct block_column *child = &block->columns[index + 1];
        column->data = block->address + (is_known ? child->data_offset : 0);
        column->data_bytes = is_known ? child->data_bytes : 0;
    }
    if (format.layout != FORMAT_VIEWS) return SUPPLY_OK;
    column->views = column->data;
    column->windows = block->windows[index].list;
    column->window_count = block->windows[index].count;
    return SUPPLY_OK;
}

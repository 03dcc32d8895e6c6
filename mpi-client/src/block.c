#include "block.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "block_column.h"

#define NOTIFICATION_FIELD(field)                                                                                      \
    {#field, offsetof(struct notification, field), sizeof((struct notification *)0)->field}

static const struct {
    const char *name;
    size_t offset;
    size_t bytes;
} notification_fields[] = {
    NOTIFICATION_FIELD(generation),    NOTIFICATION_FIELD(kind),   NOTIFICATION_FIELD(element_count),
    NOTIFICATION_FIELD(sequence),      NOTIFICATION_FIELD(epoch),  NOTIFICATION_FIELD(partition),
    NOTIFICATION_FIELD(first_element), NOTIFICATION_FIELD(offset), NOTIFICATION_FIELD(size),
    NOTIFICATION_FIELD(file),          NOTIFICATION_FIELD(reserved),
};

supply_status_t supply_blocks_allocate(struct blocks *blocks, const struct pair *pair, struct failure *failure) {
    *blocks = (struct blocks){.foreign_files.group = pair->settings.group};
    blocks->slots = calloc(pair->settings.block_count, sizeof *blocks->slots);
    return blocks->slots ? SUPPLY_OK : supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", pair->name);
}

void supply_blocks_free(struct blocks *blocks) {
    for (size_t i = 0; i < blocks->windows_count; i++) free(blocks->windows[i].list);
    supply_schema_free(&blocks->schema);
    free(blocks->windows);
    free(blocks->columns);
    free(blocks->slots);
    *blocks = (struct blocks){0};
}

static bool has_views(const struct schema *schema) {
    for (uint32_t i = 0; i < schema->count; i++)
        if (supply_schema_format(&schema->entries[i]).layout == FORMAT_VIEWS) return true;
    return false;
}

/* What was allocated before a failure is freed with the blocks. */
static bool allocate_columns(struct blocks *blocks, uint32_t block_count, const struct schema *schema) {
    const size_t count = (size_t)block_count * schema->count;
    free(blocks->columns);
    blocks->columns = calloc(count, sizeof *blocks->columns);
    if (blocks->columns == NULL) return false;
    if (has_views(schema)) {
        blocks->windows = calloc(count, sizeof *blocks->windows);
        if (blocks->windows == NULL) return false;
        blocks->windows_count = count;
    }
    for (uint32_t i = 0; i < block_count; i++) {
        blocks->slots[i].columns = blocks->columns + (size_t)i * schema->count;
        blocks->slots[i].windows = blocks->windows ? blocks->windows + (size_t)i * schema->count : NULL;
    }
    return true;
}

supply_status_t supply_blocks_learn_schema(struct blocks *blocks, const struct pair *pair, struct failure *failure) {
    if (blocks->schema.count != 0) return SUPPLY_OK;
    struct schema schema;
    supply_status_t status = supply_schema_read(&schema, supply_mapped_header(&pair->mapped_file), failure);
    if (status != SUPPLY_OK) return status;
    if (!allocate_columns(blocks, pair->settings.block_count, &schema)) {
        supply_schema_free(&schema);
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", pair->name);
    }
    blocks->schema = schema;
    return SUPPLY_OK;
}

/* The texts name the field; supply_block_check() adds the pair, and the block. */
static supply_status_t fail(const char *field, uint64_t is, const char *must, uint64_t be, struct failure *failure) {
    return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s is %" PRIu64 ", must be %s %" PRIu64, field, is, must, be);
}

/* The resident blocks (PROTOCOL.md, "Resident epochs"). */
struct resident {
    uint64_t first;
    uint64_t count;
};

static struct resident resident_blocks(const struct pair *pair) {
    const struct mapped_file_header *header = supply_mapped_header(&pair->mapped_file);
    /* The task stores the count last, with release: a count that is not 0 belongs to a first that is read later. */
    const uint64_t count = __atomic_load_n(&header->resident_count, __ATOMIC_ACQUIRE);
    return (struct resident){.first = __atomic_load_n(&header->resident_first, __ATOMIC_RELAXED), .count = count};
}

static bool is_after(const struct resident *resident, uint64_t sequence) {
    return resident->count > 0 && sequence >= resident->first && sequence - resident->first >= resident->count;
}

/* Whether the notification replays a resident block, which lies in the slot of another number. */
static bool is_replay(const struct resident *resident, const struct notification *notification) {
    return is_after(resident, notification->sequence) && notification->kind != NOTIFICATION_END_OF_DATA;
}

static uint64_t slot_offset(const struct settings *settings, uint64_t sequence) {
    return RING_OFFSET + sequence % settings->block_count * settings->block_bytes;
}

static supply_status_t check_offset(const struct settings *settings, const struct resident *resident,
                                    const struct notification *notification, struct failure *failure) {
    if (resident->count >= settings->block_count)
        return fail("resident_count", resident->count, "below block_count,", settings->block_count, failure);
    if (is_replay(resident, notification)) {
        const uint64_t in_ring = notification->offset - RING_OFFSET;
        if (notification->offset < RING_OFFSET || in_ring % settings->block_bytes != 0 ||
            in_ring / settings->block_bytes >= settings->block_count)
            return fail("notification.offset", notification->offset, "that of a slot, from", RING_OFFSET, failure);
        return SUPPLY_OK;
    }
    const uint64_t number =
        is_after(resident, notification->sequence) ? resident->first + resident->count : notification->sequence;
    const uint64_t offset = slot_offset(settings, number);
    if (notification->offset != offset)
        return fail("notification.offset", notification->offset, "that of its slot,", offset, failure);
    return SUPPLY_OK;
}

static supply_status_t check_notification(const struct pair *pair, const struct notification *notification,
                                          struct resident *resident, struct failure *failure) {
    const struct settings *settings = &pair->settings;
    if (notification->sequence != pair->expected)
        return fail("notification.sequence", notification->sequence, "the next,", pair->expected, failure);
    uint64_t published = __atomic_load_n(&supply_mapped_header(&pair->mapped_file)->published, __ATOMIC_ACQUIRE);
    if (published <= notification->sequence)
        return fail("published", published, "above notification.sequence, which is", notification->sequence, failure);
    if (published > pair->released + settings->block_count)
        return fail("published", published, "at most released + block_count, which is",
                    pair->released + settings->block_count, failure);
    *resident = resident_blocks(pair);
    supply_status_t status = check_offset(settings, resident, notification, failure);
    if (status != SUPPLY_OK) return status;
    if (notification->size < sizeof(struct block_header))
        return fail("notification.size", notification->size, "at least", sizeof(struct block_header), failure);
    if (notification->size > settings->block_bytes)
        return fail("notification.size", notification->size, "at most block_bytes,", settings->block_bytes, failure);
    bool is_block = notification->kind == NOTIFICATION_BLOCK;
    if (is_block && notification->element_count == 0)
        return fail("notification.element_count", 0, "at least", 1, failure);
    if (!is_block && notification->element_count != 0)
        return fail("notification.element_count", notification->element_count, "at an end,", 0, failure);
    return SUPPLY_OK;
}

static supply_status_t check_copy(const struct notification *notification, const struct notification *copy,
                                  struct failure *failure) {
    for (size_t i = 0; i < sizeof notification_fields / sizeof *notification_fields; i++) {
        size_t offset = notification_fields[i].offset;
        if (memcmp((const uint8_t *)notification + offset, (const uint8_t *)copy + offset,
                   notification_fields[i].bytes) != 0)
            return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                               "block_header.notification.%s is not that of the notification",
                               notification_fields[i].name);
    }
    return SUPPLY_OK;
}

/* A resident block keeps the notification of its first time, with another sequence number and an earlier epoch. */
static supply_status_t check_first_copy(const struct pair *pair, const struct resident *resident,
                                        const struct notification *notification, const struct notification *copy,
                                        struct failure *failure) {
    if (copy->sequence - resident->first >= resident->count)
        return fail("block_header.notification.sequence", copy->sequence, "that of a resident block, from",
                    resident->first, failure);
    if (notification->offset != slot_offset(&pair->settings, copy->sequence))
        return fail("notification.offset", notification->offset, "that of the slot of the resident block,",
                    slot_offset(&pair->settings, copy->sequence), failure);
    if (copy->epoch >= notification->epoch)
        return fail("notification.epoch", notification->epoch, "after the block's first one,", copy->epoch, failure);
    struct notification first = *notification;
    first.sequence = copy->sequence;
    first.epoch = copy->epoch;
    return check_copy(&first, copy, failure);
}

static supply_status_t check_views(struct blocks *blocks, const struct pair *pair, struct block *block, uint32_t index,
                                   struct failure *failure) {
    const struct block_column *column = &block->columns[index];
    const struct block_views views = {
        .windows = (const struct window *)(block->address + column->offsets_offset),
        .views = (const struct view *)(block->address + column->data_offset),
        .window_count = column->offsets_bytes / (uint32_t)sizeof(struct window),
        .element_count = block->notification.element_count,
    };
    supply_status_t status = supply_block_views_check(&block->windows[index], &views, &blocks->foreign_files,
                                                      supply_mapped_header(&pair->mapped_file), failure);
    if (status == SUPPLY_ERROR_CONTRACT)
        supply_fail(failure, status, "column '%s': %s", blocks->schema.entries[index].name, failure->text);
    if (status == SUPPLY_ERROR_MEMORY) supply_fail(failure, status, "%s: %s", pair->name, failure->text);
    return status;
}

static supply_status_t check_columns(struct blocks *blocks, const struct pair *pair, struct block *block,
                                     uint32_t column_count, struct failure *failure) {
    supply_status_t status = supply_blocks_learn_schema(blocks, pair, failure);
    if (status != SUPPLY_OK) return status;
    const struct schema *schema = &blocks->schema;
    if (column_count != schema->count)
        return fail("block_header.column_count", column_count, "that of the schema,", schema->count, failure);
    size_t table_bytes = schema->count * sizeof *block->columns;
    size_t buffers_offset = sizeof(struct block_header) + table_bytes;
    buffers_offset = (buffers_offset + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    if (block->notification.size < buffers_offset)
        return fail("notification.size", block->notification.size, "at least, with its columns,", buffers_offset,
                    failure);
    memcpy(block->columns, block->address + sizeof(struct block_header), table_bytes);
    for (uint32_t i = 0; i < schema->count && status == SUPPLY_OK; i++) {
        status = supply_block_column_check(block, &block->columns[i], &schema->entries[i], (uint32_t)buffers_offset,
                                           failure);
        if (status == SUPPLY_OK && supply_schema_format(&schema->entries[i]).layout == FORMAT_VIEWS)
            status = check_views(blocks, pair, block, i, failure);
    }
    return status;
}

static supply_status_t check(struct blocks *blocks, const struct pair *pair, const struct notification *notification,
                             struct failure *failure) {
    struct resident resident = {0};
    supply_status_t status = check_notification(pair, notification, &resident, failure);
    if (status != SUPPLY_OK) return status;
    struct block *block = &blocks->slots[notification->sequence % pair->settings.block_count];
    block->notification = *notification;
    block->address = pair->mapped_file.address + notification->offset;
    struct block_header header;
    memcpy(&header, block->address, sizeof header);
    status = is_replay(&resident, notification)
                 ? check_first_copy(pair, &resident, notification, &header.notification, failure)
                 : check_copy(notification, &header.notification, failure);
    if (status == SUPPLY_OK) status = supply_foreign_files_check(&blocks->foreign_files, failure);
    if (status != SUPPLY_OK) return status;
    block->referenced_bytes = header.referenced_bytes;
    if (notification->kind == NOTIFICATION_BLOCK)
        return check_columns(blocks, pair, block, header.column_count, failure);
    if (header.column_count != 0)
        return fail("block_header.column_count", header.column_count, "at an end,", 0, failure);
    return SUPPLY_OK;
}

supply_status_t supply_block_check(struct blocks *blocks, const struct pair *pair,
                                   const struct notification *notification, struct failure *failure) {
    supply_status_t status = check(blocks, pair, notification, failure);
    if (status == SUPPLY_ERROR_CONTRACT)
        supply_fail(failure, status, "%s: the task broke the contract in block %" PRIu64 ": %s", pair->name,
                    pair->expected, failure->text);
    if (status == SUPPLY_ERROR_SYSTEM) {
        /* supply_fail() takes it from there. */
        errno = failure->error;
        supply_fail(failure, status, "%s: %s", pair->name, failure->text);
    }
    return status;
}

supply_status_t supply_block_column(const struct blocks *blocks, const struct pair *pair, const struct block *block,
                                    uint32_t index, supply_column_t *column, struct failure *failure) {
    const struct schema_entry *entry = &blocks->schema.entries[index];
    const struct block_column *from = &block->columns[index];
    struct format format = supply_schema_format(entry);
    if (format.layout == FORMAT_UNKNOWN)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                           "%s: column '%s' has format '%s', which libsupply %s (contract %s) does not know: a newer "
                           "one may",
                           pair->name, entry->name, entry->format, supply_version(), supply_contract_version());
    *column = (supply_column_t){
        .name = entry->name,
        .format = entry->format,
        .element_count = block->notification.element_count,
        .null_count = from->null_count,
        .validity = from->validity_bytes ? block->address + from->validity_offset : NULL,
        .offsets = format.layout == FORMAT_VARIABLE ? (const int32_t *)(block->address + from->offsets_offset) : NULL,
        .data = block->address + from->data_offset,
        .data_bytes = from->data_bytes,
        .child_format = entry->child_format,
    };
    if (format.layout != FORMAT_VIEWS) return SUPPLY_OK;
    column->views = column->data;
    column->windows = block->windows[index].list;
    column->window_count = block->windows[index].count;
    return SUPPLY_OK;
}

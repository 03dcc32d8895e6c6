/**
 * R3 for resident files: locks the file as a reader, and checks that it is one of that pair and schema. Its header and
 * its notifications are read as if a task could still write them. It runs in the thread that receives, without the
 * lock.
 */
#include "block/resident_file.h"

#include <string.h>

#include "base/file_lock.h"
#include "block/block.h"

#define IN_FILE "resident file %s: "

static supply_status_t resident_fail(const struct foreign_file_mapping *mapping, const char *field, uint64_t is,
                                     const char *must, uint64_t be, struct failure *failure) {
    supply__fail_by_number(failure, field, is, must, be);
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT, IN_FILE "%s", mapping->entry.path, failure->text);
}

/* A cleaner leaves a file alone that a reader has locked. */
static supply_status_t resident_lock(const struct foreign_file_mapping *mapping, struct failure *failure) {
    if (supply__file_lock(mapping->fd, F_RDLCK, READER_LOCK_BYTE) == 0) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_SYSTEM,
                        IN_FILE "cannot be locked: %m. Its file system must have locks, and no other process may lock "
                                "the file; or run without --resident-folder",
                        mapping->entry.path);
}

static supply_status_t check_kind(const struct foreign_file_mapping *mapping, const struct mapped_file_header *header,
                                  struct failure *failure) {
    if (memcmp(header->magic, BLOCK_FILE_MAGIC, sizeof header->magic) != 0)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, IN_FILE "magic is not that of a block file",
                            mapping->entry.path);
    if (header->version != VERSION)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, IN_FILE "its version is %u.%u, must be %s: remove it",
                            mapping->entry.path, header->version >> 16, header->version & 0xffff,
                            supply_contract_version());
    if (header->byte_order != BYTE_ORDER_MARK)
        return resident_fail(mapping, "byte_order", header->byte_order, "exactly", BYTE_ORDER_MARK, failure);
    if (header->file_use != FILE_USE_RESIDENT)
        return resident_fail(mapping, "file_use", header->file_use, "exactly", FILE_USE_RESIDENT, failure);
    if (header->sealed != SEALED_COMPLETE)
        return resident_fail(mapping, "sealed", header->sealed, "exactly", SEALED_COMPLETE, failure);
    return SUPPLY_OK;
}

static supply_status_t check_numbers(const struct foreign_file_mapping *mapping,
                                     const struct mapped_file_header *header, const struct schema *schema,
                                     struct failure *failure) {
    const uint64_t count = header->block_count, bytes = header->block_bytes;
    const uint64_t ring_offset = supply__block_file_ring_offset(schema);
    if (header->ring_offset != ring_offset)
        return resident_fail(mapping, "ring_offset", header->ring_offset, "exactly", ring_offset, failure);
    if (bytes == 0 || bytes % BLOCK_BYTES_UNIT != 0 || bytes > BLOCK_BYTES_MAX)
        return resident_fail(mapping, "block_bytes", bytes, "at most 1 GiB, and a multiple of", BLOCK_BYTES_UNIT,
                             failure);
    if (count == 0) return resident_fail(mapping, "block_count", count, "at least", 1, failure);
    if (header->published != count)
        return resident_fail(mapping, "published", header->published, "block_count, which is", count, failure);
    if (header->file_bytes != mapping->entry.file_bytes)
        return resident_fail(mapping, "file_bytes", header->file_bytes, "the size of the file,",
                             mapping->entry.file_bytes, failure);
    const uint64_t last = ring_offset + (count - 1) * bytes;
    if (header->file_bytes < last + sizeof(struct block_header))
        return resident_fail(mapping, "file_bytes", header->file_bytes, "with the last block, at least",
                             last + sizeof(struct block_header), failure);
    if (header->file_bytes > last + bytes)
        return resident_fail(mapping, "file_bytes", header->file_bytes, "with the last block, at most", last + bytes,
                             failure);
    return SUPPLY_OK;
}

static supply_status_t check_schema(const struct foreign_file_mapping *mapping, const struct mapped_file_header *header,
                                    const struct schema *schema, struct failure *failure) {
    const bool is_wide = supply__schema_is_wide(schema);
    const uint8_t *at = mapping->address + (is_wide ? RING_OFFSET : SCHEMA_OFFSET);
    const size_t bytes = is_wide ? supply__schema_bytes(schema) : 0;
    if (header->schema_columns != schema->count)
        return resident_fail(mapping, "schema_columns", header->schema_columns, "that of the pair,", schema->count,
                             failure);
    if (header->schema_bytes != bytes)
        return resident_fail(mapping, "schema_bytes", header->schema_bytes, "that of the pair,", bytes, failure);
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct schema_entry *entry = &schema->entries[i];
        if (memcmp(at + i * sizeof *entry, entry, sizeof *entry) != 0)
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT, IN_FILE "schema_entry %u is not that of the pair, '%s'",
                                mapping->entry.path, i, supply__schema_name(schema, i));
        if (supply__schema_format(entry).layout == FORMAT_VIEWS)
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                IN_FILE "column '%s' has format '%s', must not be one of views", mapping->entry.path,
                                supply__schema_name(schema, i), entry->format);
    }
    if (memcmp(at + schema->count * sizeof *schema->entries, supply__schema_texts(schema), schema->text_bytes) != 0)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, IN_FILE "the texts of its schema are not those of the pair",
                            mapping->entry.path);
    return SUPPLY_OK;
}

static supply_status_t check_pair(const struct foreign_file_mapping *mapping, const struct mapped_file_header *header,
                                  const struct pair *pair, struct failure *failure) {
    const uint64_t plan = pair->mapped_file.header->plan;
    if (header->plan != plan) return resident_fail(mapping, "plan", header->plan, "that of the pair,", plan, failure);
    /* A rank that no launcher started does not know its number. */
    if (header->rank >= 0 && pair->settings.rank >= 0 &&
        header->rank != pair->settings.rank - (int)pair->settings.reader)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, IN_FILE "rank is %d, must be that of the pair, %d",
                            mapping->entry.path, header->rank, pair->settings.rank);
    return SUPPLY_OK;
}

supply_status_t supply__resident_file_open(struct resident_file *file, const struct foreign_file_mapping *mapping,
                                           const struct pair *pair, const struct schema *schema,
                                           struct failure *failure) {
    if (mapping->entry.file_bytes < RING_OFFSET)
        return resident_fail(mapping, "the size of the file", mapping->entry.file_bytes, "at least", RING_OFFSET,
                             failure);
    struct mapped_file_header header;
    memcpy(&header, mapping->address, sizeof header);
    /* A task of another user must not make the rank lock any file. */
    TRY(check_kind(mapping, &header, failure));
    TRY(resident_lock(mapping, failure));
    memcpy(&header, mapping->address, sizeof header);
    TRY(check_kind(mapping, &header, failure));
    TRY(check_numbers(mapping, &header, schema, failure));
    TRY(check_pair(mapping, &header, pair, failure));
    TRY(check_schema(mapping, &header, schema, failure));
    *file = (struct resident_file){.mapping = mapping,
                                   .generation = header.generation,
                                   .ring_offset = header.ring_offset,
                                   .block_bytes = header.block_bytes,
                                   .block_count = header.block_count};
    return SUPPLY_OK;
}

supply_status_t supply__resident_file_check_block(const struct resident_file *file,
                                                  const struct notification *notification, struct failure *failure) {
    const struct foreign_file_mapping *mapping = file->mapping;
    const uint64_t offset = notification->offset, in_blocks = offset - file->ring_offset;
    if (offset < file->ring_offset || in_blocks % file->block_bytes != 0 ||
        in_blocks / file->block_bytes >= file->block_count)
        return resident_fail(mapping, "notification.offset", offset, "that of a block, from", file->ring_offset,
                             failure);
    if (notification->size > file->block_bytes)
        return resident_fail(mapping, "notification.size", notification->size, "at most block_bytes,",
                             file->block_bytes, failure);
    if (notification->size > mapping->entry.file_bytes - offset)
        return resident_fail(mapping, "notification.size", notification->size, "within the file, at most",
                             mapping->entry.file_bytes - offset, failure);
    struct notification expected = *notification;
    expected.generation = file->generation;
    expected.sequence = in_blocks / file->block_bytes;
    expected.epoch = 0;
    expected.file = 0;
    const supply_status_t status = supply__notification_check_copy(&expected, mapping->address + offset, failure);
    if (status != SUPPLY_OK) supply__fail(failure, status, IN_FILE "%s", mapping->entry.path, failure->text);
    return status;
}

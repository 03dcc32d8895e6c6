/** A resident file: a foreign file whose blocks the task notifies (PROTOCOL.md, "Resident files"). */
#pragma once

#include "block/foreign_files.h"
#include "block/schema.h"
#include "pair/pair.h"

/** What was checked of a resident file, in this process's own memory. */
struct resident_file {
    const struct foreign_file_mapping *mapping; /**< NULL: not opened */
    uint64_t generation;
    uint64_t ring_offset; /**< where its blocks begin */
    uint64_t block_bytes;
    uint32_t block_count;
};

/**
 * Locks an opened foreign file as a reader, and checks that it is a resident file for that pair and schema. SUPPLY_OK,
 * or _CONTRACT with the wrong field, _SYSTEM: it cannot be locked (errno).
 */
supply_status_t supply__resident_file_open(struct resident_file *file, const struct foreign_file_mapping *mapping,
                                           const struct pair *pair, const struct schema *schema,
                                           struct failure *failure);

/** Checks the place of a block in the file, and its copy of the notification. SUPPLY_OK, or _CONTRACT. */
supply_status_t supply__resident_file_check_block(const struct resident_file *file,
                                                  const struct notification *notification, struct failure *failure);

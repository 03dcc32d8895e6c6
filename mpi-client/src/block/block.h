/** R3: checks a block before the program reads it. What is checked is copied first: the task may change its memory. */
#pragma once

#include "block/foreign_files.h"
#include "block/resident_file.h"
#include "block/schema.h"
#include "pair/pair.h"

/** The checked description of the block in one slot, in this process's own memory. */
struct block {
    struct notification notification;
    const uint8_t *address;
    struct block_column *columns;  /**< schema.count of them, if the kind of the notification is BLOCK */
    uint32_t *elements;            /**< as many: the elements of each */
    struct block_windows *windows; /**< as many; NULL: no column has views */
    uint32_t referenced_bytes;     /**< in foreign files */
};

/** The blocks of a ring, one for each slot, and their schema. */
struct blocks {
    struct schema schema;
    struct block *slots;
    struct block_column *columns;
    uint32_t *elements;
    struct block_windows *windows; /**< NULL: no column has views */
    size_t windows_count;
    uint32_t buffers_offset; /**< where the first buffer of a block may begin */
    struct foreign_files foreign_files;
    struct resident_file resident_files[FOREIGN_FILES_MAX]; /**< those of foreign_files that are block files */
};

/** SUPPLY_OK, or _MEMORY. Free *blocks with supply__blocks_free(). */
supply_status_t supply__blocks_allocate(struct blocks *blocks, const struct pair *pair, struct failure *failure);
void supply__blocks_free(struct blocks *blocks);

/** Reads the schema if it is not known yet. SUPPLY_OK, or _CONTRACT, _MEMORY. */
supply_status_t supply__blocks_learn_schema(struct blocks *blocks, const struct pair *pair, struct failure *failure);

/** The block of that number, received or about to be. */
static inline struct block *supply__blocks_at(const struct blocks *blocks, const struct pair *pair, uint64_t sequence) {
    return &blocks->slots[sequence % pair->settings.block_count];
}

/** SUPPLY_OK, or _CONTRACT with the first field of the copy in the memory of a task that is not the notification's. */
supply_status_t supply__notification_check_copy(const struct notification *notification, const void *shared,
                                                struct failure *failure);

/**
 * Checks a notification of the expected sequence number and its block, and fills in the struct block of the slot. May
 * wait for a lease, or for a disk: so without the lock.
 * SUPPLY_OK, or _CONTRACT with the wrong field, _SYSTEM with the foreign file that cannot be read or has changed,
 * _MEMORY. The text names the pair.
 */
supply_status_t supply__block_check(struct blocks *blocks, const struct pair *pair,
                                    const struct notification *notification, struct failure *failure);

/** One column of a checked block, or a child of one; index: of its entry. SUPPLY_OK, or _CONTRACT if its format is not
 * known: then *column is as before. */
supply_status_t supply__block_column(const struct blocks *blocks, const struct pair *pair, uint64_t sequence,
                                     uint32_t index, supply_column_t *column, struct failure *failure);

/** R3: a block is checked before anybody reads it. The task's memory is read once, into own copies, and never trusted.
 */
#ifndef SUPPLY_BLOCK_H
#define SUPPLY_BLOCK_H

#include "pair.h"
#include "schema.h"

/** What is known about the block in one slot, checked, in this process's own memory. */
struct block {
    struct notification notification;
    const uint8_t *address;
    struct block_column *columns; /**< schema.count of them, where the notification's kind is BLOCK */
};

/** The blocks of a ring, one for each slot, and the schema that they share. */
struct blocks {
    struct schema schema;
    struct block *slots;
    struct block_column *columns;
};

/** SUPPLY_OK, or _MEMORY. *blocks is to be freed by supply_blocks_free(). */
supply_status_t supply_blocks_allocate(struct blocks *blocks, const struct pair *pair, struct failure *failure);
void supply_blocks_free(struct blocks *blocks);

static inline const struct block *supply_blocks_at(const struct blocks *blocks, const struct pair *pair,
                                                   uint64_t sequence) {
    return &blocks->slots[sequence % pair->settings.block_count];
}

/**
 * Checks a notification of the expected sequence number and the block that it speaks of, and fills in that slot's
 * struct block. SUPPLY_OK, or _CONTRACT and the field that is wrong, _MEMORY.
 */
supply_status_t supply_block_check(struct blocks *blocks, const struct pair *pair,
                                   const struct notification *notification, struct failure *failure);

/** One column of a checked block. SUPPLY_OK, or _CONTRACT where its format is not known. */
supply_status_t supply_block_column(const struct blocks *blocks, const struct pair *pair, const struct block *block,
                                    uint32_t index, supply_column_t *column, struct failure *failure);

#endif

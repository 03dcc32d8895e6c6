/** The part of R3 for one column of a block. */
#ifndef SUPPLY_BLOCK_COLUMN_H
#define SUPPLY_BLOCK_COLUMN_H

#include "block.h"

/** SUPPLY_OK, or _CONTRACT with the wrong field. */
supply_status_t supply_block_column_check(const struct block *block, const struct block_column *column,
                                          const struct schema_entry *entry, uint32_t buffers_offset,
                                          struct failure *failure);

#endif

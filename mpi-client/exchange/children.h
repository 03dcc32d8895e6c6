/**
 * Columns with children in an exchange. Each element travels as one value of any length, its bytes one after the other:
 *
 *   of a nullable child   a byte, 1: valid; then its value. What a null holds is 0, or empty
 *   bits                  a byte
 *   of a fixed width      the value
 *   texts, bytes          a uint32 with their length, and they
 *   list, map             a uint32 with the number of its elements, and they
 *   list of N             N elements
 *   struct                each field
 *
 * These are never fewer bytes than the buffers of a block need, but for their alignment.
 */
#pragma once

#include "settings.h"

/**
 * Makes a column with children of a held block one of bytes: column->offsets and data are new memory, to free with
 * exchange_children_free(). SUPPLY_OK, or _CONTRACT (the task has changed them), _CONFIG, _MEMORY.
 */
supply_status_t exchange_children_pack(supply_t *pair, const supply_block_t *block, const struct columns *columns,
                                       supply_column_t *column, struct failure *failure);
void exchange_children_free(supply_column_t *column);

/**
 * Makes the children of a block of exchange_slot_finish() again. *bytes: of the block. SUPPLY_OK, or _CONTRACT: they
 * are not what exchange_children_pack() makes; or _MEMORY.
 */
supply_status_t exchange_children_unpack(const struct columns *columns, const struct slot *slot, uint32_t elements,
                                         size_t *bytes, struct failure *failure);

/** One value of a column of bytes, text or views. */
#ifndef SUPPLY_VALUES_H
#define SUPPLY_VALUES_H

#include "block_views.h"

/** Where value `index` is. False: what was checked has changed since. */
bool supply_value_find(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes);

#endif

/** A column of views as the buffers of an Arrow array. */
#ifndef SUPPLY_ARROW_VIEWS_H
#define SUPPLY_ARROW_VIEWS_H

#include <stdbool.h>
#include <stddef.h>

#include "supply_arrow.h"

/** Bytes of memory that supply_arrow_views() needs for the column. */
size_t supply_arrow_views_bytes(uint32_t element_count, uint32_t window_count);

/**
 * Points the array's buffers to the column's values. The views are copied to the memory, because consumers trust them
 * and the task could change those in the mapped file. Each window is cut to the part with values. False: the views have
 * changed since they were checked.
 */
bool supply_arrow_views(const supply_column_t *column, void *memory, struct ArrowArray *array);

#endif

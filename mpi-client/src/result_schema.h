/** The schema of a result, as a program gives it. */
#ifndef SUPPLY_RESULT_SCHEMA_H
#define SUPPLY_RESULT_SCHEMA_H

#include "result.h"

/**
 * Allocates a handle, checks what every way to open a result has, and allocates a schema of `count` empty columns.
 * SUPPLY_OK, or _ARGUMENT, _MEMORY. Free *schema in any case.
 */
supply_status_t supply_result_begin(supply_result_t **result, const supply_t *supply, const char *name, int64_t count,
                                    struct schema *schema);

/** Sets and checks a column; those before it are set. SUPPLY_OK, or _ARGUMENT. */
supply_status_t supply_result_set_field(supply_result_t *result, struct schema *schema, uint32_t index,
                                        const supply_field_t *field);

#endif

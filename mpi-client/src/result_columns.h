/** Columns that a program gives to a result, checked before a row of them is appended. */
#ifndef SUPPLY_RESULT_COLUMNS_H
#define SUPPLY_RESULT_COLUMNS_H

#include "result.h"

/** No limit: the program does not say how many bytes a buffer has. */
#define BYTES_UNKNOWN UINT64_MAX

/** Checks `count` rows of a column. data_bytes: of rows->data. SUPPLY_OK, or _ARGUMENT. */
supply_status_t supply_result_check_rows(supply_result_t *result, uint32_t index, const struct column_rows *rows,
                                         uint64_t count, uint64_t data_bytes);

#endif

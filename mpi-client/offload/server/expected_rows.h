/** Whether a matrix that Spark announces fits the memory of the nodes, before its rows come. */
#ifndef EXPECTED_ROWS_H
#define EXPECTED_ROWS_H

#include <stdint.h>

#include "ranks.h"

/**
 * Sets text if `rows` rows of `bytes` bytes each, in equal parts on the ranks, are more than one of the nodes has free.
 * 0: Spark does not know. Collective. text: FAILURE_TEXT_BYTES, "" before.
 */
void check_expected_rows(const struct ranks *ranks, uint64_t rows, uint64_t bytes, char *text);

#endif

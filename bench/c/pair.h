/** What the ranks of the benchmarks do with their pairs. Each call ends the program if it fails. */
#ifndef PAIR_H
#define PAIR_H

#include <supply.h>

/** Opens the pair of the local rank, found by SUPPLY_MAPPED_FILES and SUPPLY_NAMED_PIPES. */
supply_t *open_pair(const char *local_rank);

supply_column_t column_named(supply_t *supply, const supply_block_t *block, const char *name);

/** Returns the address of a value. */
const void *value_of(const supply_column_t *column, uint32_t index, size_t *bytes);

/** Prints the library's error, closes the pair and ends the program. */
_Noreturn void die_of(supply_t *supply);

#endif

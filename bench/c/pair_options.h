/** The pair of a benchmark's rank, found by SUPPLY_MAPPED_FILES, SUPPLY_NAMED_PIPES and the local rank. */
#ifndef PAIR_OPTIONS_H
#define PAIR_OPTIONS_H

#include <supply.h>

/** Opens the pair of the local rank (NULL: from the MPI launcher), or ends the program. */
supply_t *open_pair(const char *local_rank);

/** Returns a column of the block, or ends the program. */
supply_column_t column_named(supply_t *supply, const supply_block_t *block, const char *name);

/** The same for the column `data`. */
supply_column_t data_column(supply_t *supply, const supply_block_t *block);

/** Prints the library's error, closes the pair and ends the program. */
_Noreturn void die_of(supply_t *supply);

#endif

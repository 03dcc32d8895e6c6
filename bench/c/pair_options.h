/** How each rank of a benchmark finds its pair: SUPPLY_MAPPED_FILES and SUPPLY_NAMED_PIPES, and its number. */
#ifndef PAIR_OPTIONS_H
#define PAIR_OPTIONS_H

#include <supply.h>

/** Opens the pair of that local rank (NULL: the one that the MPI launcher says), whose sizes stand in the config files,
 * or ends the program. */
supply_t *open_pair(const char *local_rank);

/** The block's column of data, or the end of the program. */
supply_column_t data_column(supply_t *supply, const supply_block_t *block);

/** Ends the program with the library's own text, and tells Spark. */
_Noreturn void die_of(supply_t *supply);

#endif

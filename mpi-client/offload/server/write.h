/** Writes a matrix as a result, which Spark reads as a DataFrame. */
#ifndef WRITE_H
#define WRITE_H

#include "matrices.h"
#include "ranks.h"
#include "supply.h"

/**
 * Writes the rows of this rank: the columns "key", if the rows have keys, and "row", a list of numbers. Of an array,
 * rank 0 writes all rows. name: of the result. options: of the pair, with the results folder. False: text says why.
 */
bool write_matrix(const struct held *held, const struct ranks *ranks, const supply_options_t *options, const char *name,
                  char *text);

/** Removes what write_matrix() has written with these options, because Spark will not read it: a rank has failed. */
void remove_written(const supply_options_t *options);

#endif

/** Takes a matrix from Spark: the rows of a run, from the pair into this rank's memory. */
#ifndef RECEIVE_H
#define RECEIVE_H

#include "matrices.h"
#include "ranks.h"
#include "supply.h"

/** A run that Spark has been told about: its pair is open, and its rows have not come yet. */
struct reception {
    supply_t *supply; /**< NULL: none */
    uint64_t handle;
    uint64_t columns; /**< of a sparse matrix, whose rows do not tell it; 0: it is dense */
};

/**
 * Receives all rows into *held, and closes the pair. The columns of the rows are "row", a list of numbers, or for a
 * sparse matrix "indices" and "entries" (bytes: 32-bit integers, doubles); and "key" if the rows have keys. NULL: text
 * says why, with the key or the number of the row. Collective: on all ranks, or on none.
 */
struct held *receive_matrix(struct reception *reception, const struct ranks *ranks, char *text);

#endif

/** Takes a matrix from Spark: the rows of a run, from the pair into this rank's memory. */
#pragma once

#include "matrices.h"
#include "progress.h"
#include "ranks.h"
#include "supply.h"

/** A run that Spark has been told about, until Spark asks how it went. */
struct reception {
    supply_t *supply; /**< NULL: no rows are to come */
    uint64_t handle;  /**< 0: there is no run */
    uint64_t columns; /**< of a sparse matrix, whose rows do not tell it; 0: it is dense */
    char numbers;     /**< of a dense one: their format in the Arrow C Data Interface */
    struct held *held;
    char text[SUPPLY_TEXT_BYTES]; /**< why this rank does not have its rows */
};

/**
 * Receives the rows of this rank, and closes the pair. The columns of the rows are "row" (bytes: the numbers of an
 * array), or for a sparse matrix "indices" and "entries" (bytes: 32-bit integers, doubles); and "key" if the rows have
 * keys. A failure is in reception->text, with the key or the number of the row.
 */
void reception_take_rows(struct reception *reception, const struct ranks *ranks);

/**
 * The matrix, when all ranks have their rows and each key is there once. NULL: text says why. Ends the reception.
 * Collective.
 */
struct held *reception_finish(struct reception *reception, const struct ranks *ranks, struct progress *progress,
                              char *text);

/** Frees rows that nobody has asked for. */
void reception_drop(struct reception *reception);

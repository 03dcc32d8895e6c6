/** Whether each key of a matrix names one row, on all ranks together. */
#pragma once

#include "matrices.h"
#include "progress.h"
#include "ranks.h"

/** Keys of a rank that are compared at a time, in the mean. */
#define KEYS_PORTION ((uint64_t)1 << 20)

/**
 * False: text names a key that several rows have, or says that there is no memory. Rows without keys are unique.
 * Collective. portion: KEYS_PORTION, which takes at most 192 MiB on each rank, or 12 bytes a row if that is more: there
 * are at most 16 portions. text: SUPPLY_TEXT_BYTES.
 */
bool keys_are_unique(const struct keys *keys, const struct ranks *ranks, uint64_t portion, struct progress *progress,
                     char *text);

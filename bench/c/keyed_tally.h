/** Counts of key-value pairs, for comparison with Spark's (KeyedCount.scala). */
#ifndef KEYED_TALLY_H
#define KEYED_TALLY_H

#include <stdio.h>
#include <supply.h>

#include "key_set.h"

/** Starts as {0}. */
struct keyed_tally {
    uint64_t elements;
    uint64_t groups;  /* keys that differ: of all keys, or if they are sorted, from the key before */
    uint64_t key_sum; /* modulo 2^64, as all sums */
    uint64_t bound;   /* of (2 * key + 1) * the sum of its value's words: ties each value to its key */
    int64_t first, last;
    uint64_t descents; /* keys below the key before */
    struct key_set keys;
};

/** Adds the block's columns `key` and `value`, or ends the program. sorted: keys are expected in order. */
void keyed_tally_block(struct keyed_tally *tally, supply_t *supply, const supply_block_t *block, bool sorted);

/** Prints the fields of a JSON object, without its braces. */
void keyed_tally_print(const struct keyed_tally *tally, FILE *to);

#endif

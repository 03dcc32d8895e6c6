/** The consumer of an alternative. It does with an element what bench-rank does. */
#ifndef CONSUMER_H
#define CONSUMER_H

#include <stddef.h>
#include <stdint.h>

#include "tally.h"

struct consumer {
    struct tally tally;         /* of the first round */
    uint64_t first_sum, sum;    /* of the words of the data: of the first round, of this round */
    uint64_t elements;          /* of this round */
    uint64_t rounds, differing; /* all rounds, and those with another sum than the first */
};

/** Reads every byte of an element. */
void consumer_take(struct consumer *consumer, const void *data, size_t bytes);

/** Ends a round. */
void consumer_end_round(struct consumer *consumer);

/** Prints the results as bench-rank does, and ends the JSON object. */
void consumer_print(const struct consumer *consumer);

#endif

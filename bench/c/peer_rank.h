/** What the consumers of all peers do with an element: what bench-rank does. */
#ifndef PEER_RANK_H
#define PEER_RANK_H

#include <stddef.h>
#include <stdint.h>

#include "tally.h"

struct peer_rank {
    struct tally tally;         /* of the first round */
    uint64_t first_sum, sum;    /* of the words of each element's data: the first round's, this round's */
    uint64_t elements;          /* of this round */
    uint64_t rounds, differing; /* rounds, and those that do not come to what the first came to */
};

/** Reads every byte of an element. */
void peer_take(struct peer_rank *rank, const void *data, size_t bytes);

/** Ends a round. */
void peer_end_round(struct peer_rank *rank);

/** Prints everything as bench-rank does, and ends the JSON object. */
void peer_print(const struct peer_rank *rank);

#endif

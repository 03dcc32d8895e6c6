#include "peer_rank.h"

#include <inttypes.h>
#include <stdio.h>

#include "checksum.h"
#include "clock.h"
#include "memory.h"

void peer_take(struct peer_rank *rank, const void *data, size_t bytes) {
    if (rank->elements == 0) printf("%s%" PRId64, rank->rounds == 0 ? "{\"first_block\": [" : ", ", clock_nanos());
    if (rank->rounds == 0) tally_element(&rank->tally, data, bytes);
    rank->sum += sum_of_words(data, bytes);
    rank->elements++;
}

void peer_end_round(struct peer_rank *rank) {
    if (rank->rounds++ == 0) rank->first_sum = rank->sum;
    rank->differing += rank->sum != rank->first_sum || rank->elements != rank->tally.elements;
    rank->sum = rank->elements = 0;
}

void peer_print(const struct peer_rank *rank) {
    printf("], \"received\": ");
    tally_print(&rank->tally);
    printf(", \"differing_epochs\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 "}\n", rank->differing, peak_memory());
}

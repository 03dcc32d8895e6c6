#include "policy.h"

/* How many of `total` elements, dealt in turn from rank `next` on, that rank gets. */
static uint64_t quota(uint64_t total, uint32_t next, uint32_t rank, uint32_t ranks) {
    const uint32_t turn = (rank + ranks - next) % ranks;
    return total / ranks + (turn < total % ranks);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/*
 * Each rank keeps what its quota allows. The surplus of all ranks, in the order of ranks, fills what is missing on the
 * others, in the same order.
 */
void exchange_draw_balance(struct destinations *destinations, const struct draw *draw, const uint64_t *counts) {
    uint64_t total = 0, surplus_before = 0, missing_before = 0, kept = 0;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) total += counts[rank];
    for (uint32_t rank = 0; rank < draw->ranks; rank++) {
        const uint64_t of_rank = least(counts[rank], quota(total, draw->next, rank, draw->ranks));
        if (rank < draw->rank) surplus_before += counts[rank] - of_rank;
        if (rank == draw->rank) kept = of_rank;
    }
    const uint64_t surplus_end = surplus_before + (counts[draw->rank] - kept);
    uint32_t end = 0;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) {
        const uint64_t share = quota(total, draw->next, rank, draw->ranks);
        const uint64_t missing_end = missing_before + share - least(counts[rank], share);
        const uint64_t from = missing_before > surplus_before ? missing_before : surplus_before;
        const uint64_t to = least(missing_end, surplus_end);
        if (to > from) end += (uint32_t)(to - from);
        if (rank == draw->rank) end += (uint32_t)kept;
        destinations->ends[rank] = end;
        missing_before = missing_end;
    }
    for (uint32_t i = 0; i < draw->window->elements; i++) destinations->order[i] = i;
}

/**
 * The policies ALL and BALANCE. Every rank receives the same number of elements of a window, so that ranks that need
 * each other in each step, as in data-parallel training, never wait for different windows.
 */
#include "mix.h"
#include "policy.h"

/* An order of all elements, each as probable as the others (Fisher and Yates). */
static void shuffle(uint32_t *order, uint32_t count, uint64_t state) {
    for (uint32_t left = count; left > 1; left--) {
        const uint32_t other = exchange_random_below(&state, left), last = order[left - 1];
        order[left - 1] = order[other];
        order[other] = last;
    }
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The elements of all ranks. */
struct sums {
    const struct exchange_settings *settings;
    const uint64_t *counts;
    uint64_t total;
    uint32_t ranks;
    uint32_t first; /* gets one more if the total is no multiple of ranks; another rank for each window */
};

/* How many elements a rank receives. */
static uint64_t quota(const struct sums *sums, uint32_t rank) {
    const uint32_t place = (rank + sums->ranks - sums->first) % sums->ranks;
    return sums->total / sums->ranks + (place < sums->total % sums->ranks);
}

/* How many of its own elements a rank keeps: those that need not move, if it may have as many. */
static uint64_t kept(const struct sums *sums, uint32_t rank) {
    const uint64_t count = sums->counts[rank];
    if (sums->settings->policy == SUPPLY_EXCHANGE_BALANCE) return least(count, quota(sums, rank));
    const uint64_t moving = (count * sums->settings->fraction + EXCHANGE_FRACTION_UNIT / 2) / EXCHANGE_FRACTION_UNIT;
    return least(count - moving, quota(sums, rank));
}

/* How many elements of others a rank receives. */
static uint64_t missing(const struct sums *sums, uint32_t rank) { return quota(sums, rank) - kept(sums, rank); }

/* How often it was that rank's turn when `dealt` elements have been dealt to the ranks in turn. */
static uint64_t turns(uint64_t dealt, uint32_t rank, uint32_t ranks) { return dealt / ranks + (dealt % ranks > rank); }

/* What all ranks send, in the order of ranks: this rank's part of it, and how it is dealt. */
struct deal {
    uint64_t begin; /* of this rank's elements */
    uint64_t end;
    uint64_t in_turn; /* of all, dealt to the ranks in turn; the rest fills what is missing, rank after rank */
};

static struct deal find_deal(const struct sums *sums, uint32_t rank) {
    struct deal deal = {0};
    uint64_t fewest = UINT64_MAX;
    for (uint32_t i = 0; i < sums->ranks; i++) {
        if (i == rank) deal.end = deal.begin + (sums->counts[i] - kept(sums, i));
        if (i < rank) deal.begin += sums->counts[i] - kept(sums, i);
        fewest = least(fewest, missing(sums, i));
    }
    deal.in_turn = fewest * sums->ranks;
    return deal;
}

void exchange_draw_deal(struct destinations *destinations, const struct exchange_settings *settings,
                        const struct draw *draw, const uint64_t *counts) {
    const uint32_t count = draw->window->elements, ranks = draw->ranks;
    for (uint32_t i = 0; i < count; i++) destinations->order[i] = i;
    const uint32_t numbers[] = {draw->window->epoch, draw->number, draw->rank};
    /* Every order is as probable as the others. So the first elements may as well be those for rank 0, and so on. */
    if (settings->policy == SUPPLY_EXCHANGE_ALL)
        shuffle(destinations->order, count, exchange_hash(numbers, sizeof numbers, settings->seed));
    struct sums sums = {.settings = settings, .counts = counts, .ranks = ranks, .first = draw->number % ranks};
    for (uint32_t rank = 0; rank < ranks; rank++) sums.total += counts[rank];
    const struct deal deal = find_deal(&sums, draw->rank);
    const uint64_t first = least(deal.begin, deal.in_turn), last = least(deal.end, deal.in_turn);
    uint64_t filled = deal.in_turn;
    uint32_t end = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const uint64_t in_turn = turns(last, rank, ranks) - turns(first, rank, ranks);
        const uint64_t before = filled;
        filled += missing(&sums, rank) - deal.in_turn / ranks;
        const uint64_t from = before > deal.begin ? before : deal.begin, to = least(filled, deal.end);
        end += (uint32_t)(in_turn + (to > from ? to - from : 0));
        if (rank == draw->rank) end += (uint32_t)kept(&sums, rank);
        destinations->ends[rank] = end;
    }
}

void exchange_policy_level(const struct exchange_settings *settings, uint64_t *counts, uint32_t ranks) {
    if (exchange_has_key(settings) || ranks == 0) return;
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) total += counts[rank];
    uint64_t surplus = total < ranks ? 0 : total % ranks;
    while (surplus > 0) {
        for (uint32_t rank = 0; rank < ranks && surplus > 0; rank++) {
            if (counts[rank] == 0) continue;
            counts[rank]--;
            surplus--;
        }
    }
}

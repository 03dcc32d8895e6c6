/**
 * The policies of an exchange: ALL, BALANCE, HASH and RANGE. What each draws follows from the settings, the counts of
 * all ranks and the values alone, so a run can be repeated. It keeps nothing that another thread could use.
 */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/mix.h"

#define GOLDEN_SECTION 0.6180339887498949

/* What the policies with a key share. */

supply_status_t exchange_find_key(const struct exchange_settings *settings, const struct columns *columns,
                                  const char *purpose, uint32_t *index, struct failure *failure) {
    const int found = supply__schema_index(&columns->schema, settings->column);
    if (found < 0)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "there is no column '%s' to %s by: the first columns are '%s'%s%s%s", settings->column,
                            purpose, supply__schema_name(&columns->schema, 0), columns->schema.count > 1 ? ", '" : "",
                            columns->schema.count > 1 ? supply__schema_name(&columns->schema, 1) : "",
                            columns->schema.count > 1 ? "'" : "");
    if (columns->schema.entries[found].children > 0)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "the column '%s' to %s by has format '%s', whose values are no keys: choose a number, text "
                            "or bytes",
                            settings->column, purpose, columns->schema.entries[found].format);
    if (columns->plans[found].is_nullable && !settings->nulls_together)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "the column '%s' to %s by is nullable: set nulls_together, so that its nulls form one "
                            "group, or make it not nullable in Spark",
                            settings->column, purpose);
    *index = (uint32_t)found;
    return SUPPLY_OK;
}

/* Groups the elements by their destination in destinations->scratch, each group in the order of the window. */
static void policy_group(struct destinations *destinations, const struct draw *draw) {
    uint32_t *ends = destinations->ends;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) ends[rank] = 0;
    for (uint32_t i = 0; i < draw->window->elements; i++) ends[destinations->scratch[i]]++;
    uint32_t begin = 0;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) {
        const uint32_t count = ends[rank];
        ends[rank] = begin;
        begin += count;
    }
    for (uint32_t i = 0; i < draw->window->elements; i++) destinations->order[ends[destinations->scratch[i]]++] = i;
}

/* The policies ALL and BALANCE. Every rank receives the same number of elements of a window, so that ranks that need
 * each other in each step, as in data-parallel training, never wait for different windows. */

/* An order of all elements, each as probable as the others (Fisher and Yates). */
static void policy_shuffle(uint32_t *order, uint32_t count, uint64_t state) {
    for (uint32_t left = count; left > 1; left--) {
        const uint32_t other = supply__random_below(&state, left), last = order[left - 1];
        order[left - 1] = order[other];
        order[other] = last;
    }
}

static uint64_t policy_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The elements of all ranks. */
struct sums {
    const struct exchange_settings *settings;
    const uint64_t *counts;
    uint64_t total;
    uint32_t ranks;
    uint32_t first; /* gets one more if the total is no multiple of ranks; another rank for each window */
};

/* How many elements a rank receives. */
static uint64_t policy_quota(const struct sums *sums, uint32_t rank) {
    const uint32_t place = (rank + sums->ranks - sums->first) % sums->ranks;
    return sums->total / sums->ranks + (place < sums->total % sums->ranks);
}

/* How many of its own elements a rank keeps: those that need not move, if it may have as many. */
static uint64_t policy_kept(const struct sums *sums, uint32_t rank) {
    const uint64_t count = sums->counts[rank];
    if (sums->settings->policy == SUPPLY_EXCHANGE_BALANCE) return policy_least(count, policy_quota(sums, rank));
    const uint64_t moving = (count * sums->settings->fraction + EXCHANGE_FRACTION_UNIT / 2) / EXCHANGE_FRACTION_UNIT;
    return policy_least(count - moving, policy_quota(sums, rank));
}

/* How many elements of others a rank receives. */
static uint64_t policy_missing(const struct sums *sums, uint32_t rank) {
    return policy_quota(sums, rank) - policy_kept(sums, rank);
}

/* How often it was a rank's turn, which has that place among the turns, when `dealt` elements have been dealt. */
static uint64_t policy_turns(uint64_t dealt, uint64_t place, uint32_t ranks) {
    return dealt / ranks + (dealt % ranks > place);
}

static uint32_t policy_divisor(uint32_t a, uint32_t b) { return b == 0 ? a : policy_divisor(b, a % b); }

/*
 * From one turn to the next is a golden section of the ranks, or a little more: a few elements one after the other go
 * to ranks far apart, and so do those of ranks with equally many. Else the ranks of one node could get all that the
 * ranks of a rail have. Returns the distance of two neighbouring ranks' turns.
 */
static uint32_t policy_turn_distance(uint32_t ranks) {
    uint32_t step = (uint32_t)(ranks * GOLDEN_SECTION) + 1, distance = 1;
    while (policy_divisor(step, ranks) != 1) step++;
    while ((uint64_t)distance * step % ranks != 1 % ranks) distance++;
    return distance;
}

/*
 * What all ranks send, in the order of ranks: this rank's part of it, and how it is dealt. If three ranks miss 4, 2 and
 * 3 elements, the first 6 go to ranks 0 2 1 0 2 1 in turn, and the other 3 fill what is missing: 0 0 2.
 */
struct deal {
    uint64_t begin; /* of this rank's elements */
    uint64_t end;
    uint64_t in_turn; /* of all, dealt to the ranks in turn; the rest fills what is missing, rank after rank */
};

static struct deal policy_find_deal(const struct sums *sums, uint32_t rank) {
    struct deal deal = {0};
    uint64_t fewest = UINT64_MAX;
    for (uint32_t i = 0; i < sums->ranks; i++) {
        if (i == rank) deal.end = deal.begin + (sums->counts[i] - policy_kept(sums, i));
        if (i < rank) deal.begin += sums->counts[i] - policy_kept(sums, i);
        fewest = policy_least(fewest, policy_missing(sums, i));
    }
    deal.in_turn = fewest * sums->ranks;
    return deal;
}

/* The elements of all ranks go to one rank after the other, from the first one on that has none. */
static void policy_draw_part(struct destinations *destinations, const struct draw *draw, const uint64_t *counts) {
    uint64_t first = draw->number + draw->dealt;
    uint32_t end = 0;
    for (uint32_t rank = 0; rank < draw->rank; rank++) first += counts[rank];
    for (uint32_t rank = 0; rank < draw->ranks; rank++) {
        const uint32_t index = (uint32_t)((rank + draw->ranks - first % draw->ranks) % draw->ranks);
        if (index < draw->window->elements) destinations->order[end++] = index;
        destinations->ends[rank] = end;
    }
}

void exchange_draw_deal(struct destinations *destinations, const struct exchange_settings *settings,
                        const struct draw *draw, const uint64_t *counts) {
    const uint32_t count = draw->window->elements, ranks = draw->ranks;
    for (uint32_t i = 0; i < count; i++) destinations->order[i] = i;
    const uint32_t numbers[] = {draw->window->epoch, draw->number, draw->rank};
    /* Every order is as probable as the others. So the first elements may as well be those for rank 0, and so on. */
    if (settings->policy == SUPPLY_EXCHANGE_ALL)
        policy_shuffle(destinations->order, count, supply__hash(numbers, sizeof numbers, settings->seed));
    struct sums sums = {.settings = settings, .counts = counts, .ranks = ranks, .first = draw->number % ranks};
    for (uint32_t rank = 0; rank < ranks; rank++) sums.total += counts[rank];
    const struct deal deal = policy_find_deal(&sums, draw->rank);
    const uint64_t first = policy_least(deal.begin, deal.in_turn), last = policy_least(deal.end, deal.in_turn);
    uint64_t filled = deal.in_turn;
    uint64_t place = 0;
    uint32_t end = 0;
    const uint32_t distance = policy_turn_distance(ranks);
    for (uint32_t rank = 0; rank < ranks; rank++, place = (place + distance) % ranks) {
        const uint64_t in_turn = policy_turns(last, place, ranks) - policy_turns(first, place, ranks);
        const uint64_t before = filled;
        filled += policy_missing(&sums, rank) - deal.in_turn / ranks;
        const uint64_t from = before > deal.begin ? before : deal.begin, to = policy_least(filled, deal.end);
        end += (uint32_t)(in_turn + (to > from ? to - from : 0));
        if (rank == draw->rank) end += (uint32_t)policy_kept(&sums, rank);
        destinations->ends[rank] = end;
    }
}

void exchange_policy_level(const struct exchange_settings *settings, uint64_t *counts, uint32_t ranks, uint64_t dealt) {
    if (exchange_has_key(settings) || ranks == 0) return;
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) total += counts[rank];
    uint64_t surplus = dealt > 0 ? total + dealt - ranks : total % ranks;
    if (total + dealt < ranks) surplus = 0;
    while (surplus > 0) {
        for (uint32_t rank = 0; rank < ranks && surplus > 0; rank++) {
            if (counts[rank] == 0) continue;
            counts[rank]--;
            surplus--;
        }
    }
}

/* The policy RANGE: samples and splitters, then the rank of each key. */

/* Samples of all ranks together, and of one rank at least. */
#define SAMPLES 4096
#define SAMPLES_LEAST 16

supply_status_t exchange_range_init(struct range *range, uint32_t ranks, struct failure *failure) {
    const uint32_t of_rank = SAMPLES / ranks > SAMPLES_LEAST ? SAMPLES / ranks : SAMPLES_LEAST;
    *range = (struct range){.ranks = ranks,
                            .of_rank = of_rank,
                            .mine = calloc(of_rank, sizeof *range->mine),
                            .all = calloc((size_t)of_rank * ranks, sizeof *range->all),
                            .splitters = calloc(ranks, sizeof *range->splitters)};
    if (range->mine != NULL && range->all != NULL && range->splitters != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_range_free(struct range *range) {
    free(range->mine);
    free(range->all);
    free(range->splitters);
    *range = (struct range){0};
}

/* Divides equal keys among ranks: it is different for each element of an epoch, and the same if a run resumes. */
static uint64_t range_tie(const struct held_block *held, uint32_t row) {
    const uint64_t place[] = {held->block.partition, held->block.first_element + row};
    return supply__hash(place, sizeof place, 0);
}

void exchange_range_sample(struct range *range, const struct gathered_window *window) {
    memset(range->mine, 0, range->of_rank * sizeof *range->mine);
    const uint32_t count = window->elements < range->of_rank ? window->elements : range->of_rank;
    for (uint32_t i = 0; i < count; i++) {
        struct sort_key key;
        uint32_t row;
        const struct piece *piece =
            exchange_window_find(window, (uint32_t)((uint64_t)i * window->elements / count), &row);
        exchange_key_read(range->by.order, &piece->held->columns[range->by.index], row, &key);
        const size_t bytes = key.rest_bytes < SAMPLE_REST_BYTES ? key.rest_bytes : SAMPLE_REST_BYTES;
        range->mine[i] = (struct sample){.prefix = key.prefix,
                                         .tie = range_tie(piece->held, row),
                                         .weight = (uint64_t)window->elements * SAMPLE_WEIGHT / count,
                                         .is_null = key.is_null,
                                         .rest_bytes = (uint32_t)bytes};
        memcpy(range->mine[i].rest, key.rest, bytes);
    }
}

static struct sort_key range_key(const struct sample *sample) {
    const size_t bytes = sample->rest_bytes < SAMPLE_REST_BYTES ? sample->rest_bytes : SAMPLE_REST_BYTES;
    return (struct sort_key){
        .prefix = sample->prefix, .rest = sample->rest, .rest_bytes = bytes, .is_null = sample->is_null != 0};
}

static int range_compare(const void *one, const void *other) {
    const struct sort_key a = range_key(one), b = range_key(other);
    const uint64_t tie = ((const struct sample *)one)->tie, other_tie = ((const struct sample *)other)->tie;
    const int order = exchange_key_compare(&a, &b);
    return order != 0 ? order : (tie > other_tie) - (tie < other_tie);
}

void exchange_range_split(struct range *range) {
    uint32_t used = 0, at = 0;
    uint64_t weight = 0, before = 0;
    for (uint32_t i = 0; i < range->of_rank * range->ranks; i++) {
        if (range->all[i].weight == 0) continue;
        range->all[used++] = range->all[i];
        weight += range->all[used - 1].weight;
    }
    qsort(range->all, used, sizeof *range->all, range_compare);
    range->splitter_count = used > 0 ? range->ranks - 1 : 0;
    for (uint32_t i = 0; i < range->splitter_count; i++) {
        while (at + 1 < used && before + range->all[at].weight <= weight / range->ranks * (i + 1))
            before += range->all[at++].weight;
        range->splitters[i] = range->all[at];
    }
}

/* The rank that gets the element of that key. */
static uint32_t range_rank(const struct range *range, const struct sort_key *key, const struct held_block *held,
                           uint32_t row) {
    uint32_t low = 0, high = range->splitter_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct sample *sample = &range->splitters[middle];
        const struct sort_key splitter = range_key(sample);
        const int order = exchange_key_compare(&splitter, key);
        if (order < 0 || (order == 0 && sample->tie <= range_tie(held, row)))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static supply_status_t policy_prepare_range(const struct exchange_settings *settings, const struct columns *columns,
                                            struct range *range, struct failure *failure) {
    TRY(exchange_find_key(settings, columns, "sort", &range->by.index, failure));
    const char *format = columns->schema.entries[range->by.index].format;
    range->by.order = exchange_key_order(format);
    if (range->by.order != NULL) return SUPPLY_OK;
    return supply__fail(
        failure, SUPPLY_ERROR_ARGUMENT,
        "the column '%s' has format '%s', by which this exchange cannot sort: cast it to a float, a bigint, "
        "text or bytes",
        settings->column, format);
}

static void policy_draw_range(struct destinations *destinations, const struct draw *draw) {
    const struct sort_column *by = &draw->range->by;
    for (uint32_t i = 0; i < draw->window->piece_count; i++) {
        const struct piece *piece = &draw->window->pieces[i];
        for (uint32_t k = 0; k < piece->count; k++) {
            struct sort_key key;
            exchange_key_read(by->order, &piece->held->columns[by->index], piece->row + k, &key);
            destinations->scratch[piece->start + k] = range_rank(draw->range, &key, piece->held, piece->row + k);
        }
    }
}

/* Also an empty window has a list, of which the rounds take parts. */
static bool policy_reserve(uint32_t **list, uint32_t *capacity, uint32_t count) {
    if (*list != NULL && count <= *capacity) return true;
    free(*list);
    *list = malloc(((size_t)count + 1) * sizeof **list);
    *capacity = *list ? count : 0;
    return *list != NULL;
}

static bool policy_reserve_order(struct destinations *destinations, uint32_t count) {
    if (destinations->rows != NULL && count <= destinations->capacity) return true;
    free(destinations->rows);
    destinations->capacity = 0;
    destinations->rows = malloc(((size_t)count + 1) * sizeof *destinations->rows);
    return destinations->rows != NULL && policy_reserve(&destinations->order, &destinations->capacity, count);
}

supply_status_t exchange_policy_prepare(struct destinations *destinations, const struct exchange_settings *settings,
                                        const struct columns *columns, const struct draw *draw,
                                        struct failure *failure) {
    const uint32_t count = draw->window->elements;
    if (destinations->ends == NULL) destinations->ends = calloc(draw->ranks, sizeof *destinations->ends);
    if (destinations->ends == NULL || !policy_reserve_order(destinations, count) ||
        (exchange_has_key(settings) && !policy_reserve(&destinations->scratch, &destinations->scratch_capacity, count)))
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory for the order of %u elements", count);
    if (columns->schema.count == 0 || !exchange_has_key(settings)) return SUPPLY_OK;
    return settings->policy == SUPPLY_EXCHANGE_HASH
               ? exchange_prepare_hash(destinations, settings, columns, draw, failure)
               : policy_prepare_range(settings, columns, draw->range, failure);
}

void exchange_policy_draw(struct destinations *destinations, const struct exchange_settings *settings,
                          const struct draw *draw, const uint64_t *counts) {
    if (settings->policy == SUPPLY_EXCHANGE_RANGE) policy_draw_range(destinations, draw);
    if (exchange_has_key(settings))
        policy_group(destinations, draw);
    else if (draw->is_part)
        policy_draw_part(destinations, draw, counts);
    else
        exchange_draw_deal(destinations, settings, draw, counts);
    for (uint32_t i = 0; i < draw->window->elements; i++) {
        struct source_row *at = &destinations->rows[i];
        at->columns = exchange_window_find(draw->window, destinations->order[i], &at->row)->held->columns;
    }
}

void exchange_destinations_free(struct destinations *destinations) {
    free(destinations->order);
    free(destinations->rows);
    free(destinations->ends);
    free(destinations->scratch);
    *destinations = (struct destinations){0};
}

#include "range.h"

#include <stdlib.h>
#include <string.h>

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
    return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_range_free(struct range *range) {
    free(range->mine);
    free(range->all);
    free(range->splitters);
    *range = (struct range){0};
}

static void store(const struct sort_key *key, struct sample *sample) {
    const size_t bytes = key->rest_bytes < SAMPLE_REST_BYTES ? key->rest_bytes : SAMPLE_REST_BYTES;
    *sample = (struct sample){.prefix = key->prefix, .is_used = !key->is_null, .rest_bytes = (uint32_t)bytes};
    memcpy(sample->rest, key->rest, bytes);
}

void exchange_range_sample(struct range *range, const struct gathered_window *window) {
    memset(range->mine, 0, range->of_rank * sizeof *range->mine);
    const uint32_t count = window->elements < range->of_rank ? window->elements : range->of_rank;
    for (uint32_t i = 0; i < count; i++) {
        struct sort_key key;
        exchange_read_key(window, &range->by, (uint32_t)((uint64_t)i * window->elements / count), &key);
        store(&key, &range->mine[i]);
    }
}

static struct sort_key key_of(const struct sample *sample) {
    const size_t bytes = sample->rest_bytes < SAMPLE_REST_BYTES ? sample->rest_bytes : SAMPLE_REST_BYTES;
    return (struct sort_key){.prefix = sample->prefix, .rest = sample->rest, .rest_bytes = bytes};
}

static int compare(const void *one, const void *other) {
    const struct sort_key a = key_of(one), b = key_of(other);
    return exchange_key_compare(&a, &b);
}

void exchange_range_split(struct range *range) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < range->of_rank * range->ranks; i++)
        if (range->all[i].is_used) range->all[used++] = range->all[i];
    qsort(range->all, used, sizeof *range->all, compare);
    range->splitter_count = used > 0 ? range->ranks - 1 : 0;
    for (uint32_t i = 0; i < range->splitter_count; i++)
        range->splitters[i] = range->all[(uint64_t)(i + 1) * used / range->ranks];
}

uint32_t exchange_range_rank(const struct range *range, const struct sort_key *key) {
    uint32_t low = 0, high = range->splitter_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct sort_key splitter = key_of(&range->splitters[middle]);
        if (exchange_key_compare(&splitter, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

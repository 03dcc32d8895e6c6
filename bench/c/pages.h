/** What the receivers of bench/feeders do with what they have received, and what they print. */
#ifndef PAGES_H
#define PAGES_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { PAGE = 4096 };

/** The sum of a 64-bit word of each page from `data` on. */
static inline uint64_t sum_of_pages(const void *data, size_t bytes) {
    uint64_t sum = 0, word;
    for (size_t at = 0; at + sizeof word <= bytes; at += PAGE) {
        memcpy(&word, (const char *)data + at, sizeof word);
        sum += word;
    }
    return sum;
}

/** Prints what a pass over the data has had, and that it is over now. */
static inline void pass_answer(const struct tally *tally, uint64_t sum) {
    printf("{\"at\": %" PRId64 ", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"crc_sum\": %" PRIu64
           ", \"sum\": %" PRIu64 "}\n",
           clock_nanos(), tally->elements, tally->bytes, tally->crc_sum, sum);
    fflush(stdout);
}

#endif

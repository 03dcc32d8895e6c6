#include "bench.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

static const char *name = "bench";

void messages_from(const char *program) { name = program; }

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t cpu_clock(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

int64_t clock_nanos(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t sum_of_words(const void *data, size_t bytes) {
    const char *at = data;
    const size_t whole = bytes / sizeof(uint64_t);
    uint64_t sum = 0, word;
    for (size_t i = 0; i < whole; i++) {
        memcpy(&word, at + i * sizeof word, sizeof word);
        sum += word;
    }
    word = 0;
    memcpy(&word, at + whole * sizeof word, bytes % sizeof word);
    return sum + word;
}

void tally_element(struct tally *tally, const void *data, size_t bytes) {
    tally->elements += 1;
    tally->bytes += bytes;
    tally->crc_sum += crc32_z(0, data, bytes);
}

bool next_round(void) {
    char line[16];
    return fgets(line, sizeof line, stdin) != NULL;
}

struct round round_begin(void) { return (struct round){.start = clock_nanos(), .cpu_nanos = -cpu_clock()}; }

void round_end(struct round *round) {
    round->nanos = clock_nanos() - round->start;
    round->cpu_nanos += cpu_clock();
}

void round_answer(const struct round *round, uint64_t elements, uint64_t bytes, uint64_t sum) {
    printf("{\"start\": %" PRId64 ", \"nanos\": %" PRId64 ", \"cpu_nanos\": %" PRId64 ", \"elements\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"sum\": %" PRIu64 ", \"readers_nanos\": %" PRId64 "}\n",
           round->start, round->nanos, round->cpu_nanos, elements, bytes, sum, round->readers_nanos);
    fflush(stdout);
}

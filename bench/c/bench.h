/** What the programs of the benchmarks share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Names the program in every message. */
void messages_from(const char *program);

/** Prints one line on stderr and ends the program with status 1. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Nanoseconds of the clock that System.nanoTime() reads: times of both sides can be compared. */
int64_t clock_nanos(void);

/** The sum of the 64-bit words, the last one padded with zeros. data may have any alignment. Reads every byte once. */
uint64_t sum_of_words(const void *data, size_t bytes);

/** Counts of received elements, for comparison with the source. They do not depend on the order of the elements. */
struct tally {
    uint64_t elements;
    uint64_t bytes;   /* of the elements' data */
    uint64_t crc_sum; /* of each element's CRC-32, as java.util.zip.CRC32 has it, modulo 2^64 */
};

void tally_element(struct tally *tally, const void *data, size_t bytes);

/** A baseline reads a line for each measurement. Waits for the next one. False at the end of stdin. */
bool next_round(void);

/** Nanoseconds of processor time of this process. */
int64_t cpu_clock(void);

/** Wall-clock and CPU times in nanoseconds. readers_nanos: CPU time of other processes. */
struct round {
    int64_t start, nanos, cpu_nanos, readers_nanos;
};

struct round round_begin(void);

/** Sets the times from the beginning until now. */
void round_end(struct round *round);

/** Prints the answer: the times of the round, what it has read, and the sum. */
void round_answer(const struct round *round, uint64_t elements, uint64_t bytes, uint64_t sum);

#endif

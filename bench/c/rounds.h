/** The rounds of a baseline: it reads one line for each measurement, and answers with one line. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/** Waits for the next line of stdin, and removes the line end. False at the end of stdin. */
bool next_round(char *line, int bytes);

/** Wall-clock and CPU times in nanoseconds. */
struct round {
    int64_t start, cpu_start, first;
};

/** first_nanos: time until the first element; 0 if round_first() was not called. */
struct round_times {
    int64_t start, nanos, cpu_nanos, first_nanos;
};

struct round round_begin(void);
/** Records the time of the first element. */
void round_first(struct round *round);
struct round_times round_end(struct round round);

/** Prints the answer: the times of the round, what it has read, the sum, and the memory of this process. */
void answer_round(struct round_times times, uint64_t elements, uint64_t bytes, uint64_t sum);

#endif

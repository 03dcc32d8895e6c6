/** A limit or a peer that measures whenever it is told to: one line in, one line out. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/** Waits for the next line of stdin, without its end; false at the end of stdin: nobody wants more rounds. */
bool next_round(char *line, int bytes);

/** Times by the clock, and of this process alone. */
struct round {
    int64_t start, cpu_start, first;
};

/** first_nanos: until the first element was there; 0 where nobody has noted it. */
struct round_times {
    int64_t start, nanos, cpu_nanos, first_nanos;
};

struct round round_begin(void);
/** The first element is there. */
void round_first(struct round *round);
struct round_times round_end(struct round round);

/** Answers a round with the time that it took, what was read in it and its sum, and the memory of this process. */
void answer_round(struct round_times times, uint64_t elements, uint64_t bytes, uint64_t sum);

#endif

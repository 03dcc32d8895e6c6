/** A limit or a peer that measures whenever it is told to: one line in, one line out. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/** Waits for the next line of stdin, without its end; false at the end of stdin: nobody wants more rounds. */
bool next_round(char *line, int bytes);

/** Answers a round with the time it took and what was read in it. */
void answer_round(int64_t start, int64_t end, uint64_t elements, uint64_t bytes, uint64_t sum);

#endif

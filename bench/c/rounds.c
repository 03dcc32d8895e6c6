#include "rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "memory.h"

bool next_round(char *line, int bytes) {
    if (fgets(line, bytes, stdin) == NULL) return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

struct round round_begin(void) { return (struct round){.start = clock_nanos(), .cpu_start = clock_cpu_nanos()}; }

void round_first(struct round *round) { round->first = clock_nanos(); }

struct round_times round_end(struct round round) {
    return (struct round_times){
        .start = round.start,
        .nanos = clock_nanos() - round.start,
        .cpu_nanos = clock_cpu_nanos() - round.cpu_start,
        .first_nanos = round.first == 0 ? 0 : round.first - round.start,
    };
}

void answer_round(struct round_times times, uint64_t elements, uint64_t bytes, uint64_t sum) {
    printf("{\"start\": %" PRId64 ", \"nanos\": %" PRId64 ", \"cpu_nanos\": %" PRId64 ", \"first_nanos\": %" PRId64
           ", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"sum\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 "}\n",
           times.start, times.nanos, times.cpu_nanos, times.first_nanos, elements, bytes, sum, peak_memory());
    fflush(stdout);
}

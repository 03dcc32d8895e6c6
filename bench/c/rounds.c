#include "rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool next_round(char *line, int bytes) {
    if (fgets(line, bytes, stdin) == NULL) return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

void answer_round(int64_t start, int64_t end, uint64_t elements, uint64_t bytes, uint64_t sum) {
    printf("{\"start\": %" PRId64 ", \"nanos\": %" PRId64 ", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"sum\": %" PRIu64 "}\n",
           start, end - start, elements, bytes, sum);
    fflush(stdout);
}

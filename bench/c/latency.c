/** Prints the age of each block: its only element begins with the time at which the task began to write it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "messages.h"
#include "pair_options.h"

int main(int argc, char **argv) {
    messages_from("bench-latency");
    if (argc != 2) die("usage: bench-latency LOCAL_RANK");
    supply_t *supply = open_pair(argv[1]);
    supply_block_t block;
    supply_status_t status;
    uint64_t sum = 0;
    const char *separator = "";
    printf("{\"nanos\": [");
    while ((status = supply_next(supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die_of(supply);
        if (status == SUPPLY_END_OF_EPOCH) continue;
        const supply_column_t data = data_column(supply, &block);
        sum += sum_of_words(data.data, data.data_bytes);
        int64_t start;
        memcpy(&start, data.data, sizeof start);
        const int64_t age = clock_nanos() - start;
        if (supply_release(supply, &block) != SUPPLY_OK) die_of(supply);
        printf("%s%" PRId64, separator, age);
        separator = ", ";
    }
    supply_close(supply);
    printf("], \"sum\": %" PRIu64 "}\n", sum);
    return 0;
}

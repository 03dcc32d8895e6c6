/**
 * A rank that connects to Spark (SUPPLY_CONNECT). It reads a word of each page of the data. In epoch 0, which is not
 * timed, it also computes the CRC of each element. Argument: the bytes of a block.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "pages.h"
#include "pair.h"

/* Of System.nanoTime() when Spark made the first row of the block; 0: its rows do not have that. */
static int64_t made(supply_t *supply, const supply_block_t *block) {
    if (supply_column_index(supply, "made") < 0) return 0;
    return *(const int64_t *)column_named(supply, block, "made").data;
}

static void take(supply_t *supply, const supply_block_t *block, struct tally *tally, uint64_t *sum) {
    const supply_column_t data = column_named(supply, block, "data");
    *sum += sum_of_pages(data.data, data.data_bytes);
    for (uint32_t i = 0; block->epoch == 0 && i < block->element_count; i++) {
        size_t bytes;
        const void *address = value_of(&data, i, &bytes);
        tally_element(tally, address, bytes);
    }
    if (block->epoch > 0) {
        tally->elements += block->element_count;
        tally->bytes += data.data_bytes;
    }
}

int main(int argc, char **argv) {
    messages_from("bench-linked-rank");
    if (argc != 2) die("usage: bench-linked-rank BLOCK");
    supply_options_t options;
    supply_options_init(&options);
    options.block_bytes = strtoull(argv[1], NULL, 10);
    supply_t *supply;
    if (supply_open(&supply, &options) != SUPPLY_OK) die_of(supply);
    supply_status_t status;
    supply_block_t block;
    struct tally tally = {0};
    uint64_t sum = 0;
    bool is_first = true;
    while ((status = supply_next(supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die_of(supply);
        if (status == SUPPLY_END_OF_EPOCH) {
            pass_answer(&tally, sum);
            tally = (struct tally){0};
            sum = 0;
            continue;
        }
        if (is_first) printf("{\"first\": %" PRId64 ", \"made\": %" PRId64 "}\n", clock_nanos(), made(supply, &block));
        is_first = false;
        take(supply, &block, &tally, &sum);
        if (supply_release(supply, &block) != SUPPLY_OK) die_of(supply);
    }
    supply_close(supply);
    return 0;
}

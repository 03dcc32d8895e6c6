/**
 * The rank of the cycle. Epoch 0 is not timed: the rank computes the CRC of each element. In each epoch it reads every
 * byte in place. The sum of the data column's words must equal that of epoch 0, so the timed work itself verifies every
 * byte.
 */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "pair.h"

/** Sums of one epoch. */
struct sums {
    uint64_t elements;
    uint64_t data;  /* words of the data column */
    uint64_t other; /* words of everything else */
};

struct rank {
    supply_t *supply;
    struct tally tally;
    struct sums first, current;
    uint64_t differing; /* epochs with another sum than epoch 0 */
    int64_t cpu_begin;  /* of epoch 1 */
};

static void tally_block(struct rank *rank, const supply_column_t *data) {
    const bool has_bytes = data->offsets != NULL || data->views != NULL;
    if (!has_bytes) rank->tally.elements += data->element_count;
    for (uint32_t i = 0; has_bytes && i < data->element_count; i++) {
        size_t bytes;
        const void *address = value_of(data, i, &bytes);
        tally_element(&rank->tally, address, bytes);
    }
}

/** Sums values that lie in a foreign file. */
static void sum_views(struct rank *rank, const supply_column_t *data) {
    for (uint32_t i = 0; i < data->element_count; i++) {
        size_t bytes;
        const void *address = value_of(data, i, &bytes);
        rank->current.data += sum_of_words(address, bytes);
    }
}

/** Reads every byte of the block's columns. */
static void sum_block(struct rank *rank, const supply_block_t *block) {
    const int data = supply_column_index(rank->supply, "data");
    for (int i = 0; i < block->column_count; i++) {
        supply_column_t column;
        if (supply_column(rank->supply, block, i, &column) != SUPPLY_OK) die_of(rank->supply);
        if (i == data && column.views != NULL) sum_views(rank, &column);
        if (i == data && column.views == NULL)
            rank->current.data += sum_of_words(column.data, column.data_bytes);
        else
            rank->current.other += sum_of_words(column.data, column.data_bytes);
        if (column.offsets != NULL)
            rank->current.other += sum_of_words(column.offsets, 4 * ((size_t)block->element_count + 1));
    }
}

static void take(struct rank *rank, const supply_block_t *block) {
    if (block->epoch == 0) {
        const supply_column_t data = column_named(rank->supply, block, "data");
        tally_block(rank, &data);
    }
    sum_block(rank, block);
    rank->current.elements += block->element_count;
}

static void end_epoch(struct rank *rank, uint32_t epoch) {
    if (epoch == 0) rank->first = rank->current;
    if (epoch == 0) rank->cpu_begin = cpu_clock();
    rank->differing += rank->current.elements != rank->first.elements || rank->current.data != rank->first.data;
    rank->current = (struct sums){0};
}

int main(int argc, char **argv) {
    messages_from("bench-rank");
    if (argc != 2) die("usage: bench-rank LOCAL_RANK");
    struct rank rank = {.supply = open_pair(argv[1])};
    supply_status_t status;
    supply_block_t block;
    while ((status = supply_next(rank.supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die_of(rank.supply);
        if (status == SUPPLY_END_OF_EPOCH) {
            end_epoch(&rank, block.epoch);
        } else {
            take(&rank, &block);
            if (supply_release(rank.supply, &block) != SUPPLY_OK) die_of(rank.supply);
        }
    }
    const int64_t cpu_nanos = cpu_clock() - rank.cpu_begin;
    supply_close(rank.supply);
    printf("{\"received\": {\"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"crc_sum\": %" PRIu64
           "}, \"data_sum\": %" PRIu64 ", \"differing_epochs\": %" PRIu64 ", \"cpu_nanos\": %" PRId64 "}\n",
           rank.tally.elements, rank.tally.bytes, rank.tally.crc_sum, rank.first.data, rank.differing, cpu_nanos);
    return 0;
}

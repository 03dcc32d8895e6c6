/**
 * The rank of the benchmarks. Epoch 0 is not timed: the rank computes the CRC of each element. In the other epochs it
 * sums the words of the data column, or copies and then sums them. Each sum must equal that of epoch 0, so the timed
 * work itself verifies every byte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "memory.h"
#include "messages.h"
#include "pair_options.h"
#include "rank_options.h"
#include "tally.h"

/** Sums of one epoch. */
struct sums {
    uint64_t elements;
    uint64_t data;  /* words of the data column */
    uint64_t other; /* words of everything else */
    int64_t first;  /* time of the first block */
};

/** The blocks of one partition. */
struct span {
    uint32_t epoch, partition;
    uint64_t bytes; /* of the elements' data */
    int64_t end;    /* time at which its last block had been read */
};

struct rank {
    supply_t *supply;
    enum consumption consumption;
    struct tally tally;
    struct sums first, current;
    uint64_t differing; /* epochs with another sum than epoch 0 */
    struct span *spans;
    size_t span_count;
    void *copy;
    size_t copy_bytes;
};

static const void *value(const supply_column_t *data, uint32_t index, size_t *bytes) {
    const void *address;
    if (supply_value(data, index, &address, bytes) != SUPPLY_OK) die("element %u cannot be read", index);
    return address;
}

static void tally_block(struct rank *rank, const supply_column_t *data) {
    for (uint32_t i = 0; i < data->element_count; i++) {
        size_t bytes;
        const void *address = value(data, i, &bytes);
        tally_element(&rank->tally, address, bytes);
    }
}

/** Returns the bytes of values that lie in a foreign file. */
static uint64_t sum_views(struct rank *rank, const supply_column_t *data) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < data->element_count; i++) {
        size_t bytes;
        const void *address = value(data, i, &bytes);
        rank->current.data += sum_of_words(address, bytes);
        total += bytes;
    }
    return total;
}

/** Reads every byte of the block's columns. Returns those of the data. */
static uint64_t sum_block(struct rank *rank, const supply_block_t *block) {
    uint64_t total = 0;
    const int data = supply_column_index(rank->supply, "data");
    for (int i = 0; i < block->column_count; i++) {
        supply_column_t column;
        if (supply_column(rank->supply, block, i, &column) != SUPPLY_OK) die_of(rank->supply);
        if (i == data) total += column.views != NULL ? sum_views(rank, &column) : column.data_bytes;
        if (i == data && column.views == NULL)
            rank->current.data += sum_of_words(column.data, column.data_bytes);
        else
            rank->current.other += sum_of_words(column.data, column.data_bytes);
        if (column.offsets != NULL)
            rank->current.other += sum_of_words(column.offsets, 4 * ((size_t)block->element_count + 1));
    }
    return total;
}

static void copy_block(struct rank *rank, const supply_block_t *block, const supply_column_t *data) {
    if (rank->copy == NULL || block->bytes > rank->copy_bytes) {
        free(rank->copy);
        rank->copy_bytes = block->bytes;
        rank->copy = malloc(rank->copy_bytes);
        if (rank->copy == NULL) die("no memory for a copy of a block of %zu bytes", rank->copy_bytes);
    }
    memcpy(rank->copy, block->address, block->bytes);
    const size_t at = (size_t)((const char *)data->data - (const char *)block->address);
    rank->current.data += sum_of_words((const char *)rank->copy + at, data->data_bytes);
}

static void add_to_span(struct rank *rank, const supply_block_t *block, uint64_t data_bytes, int64_t now) {
    struct span *last = rank->span_count > 0 ? &rank->spans[rank->span_count - 1] : NULL;
    if (last == NULL || last->epoch != block->epoch || last->partition != block->partition) {
        rank->spans = reallocarray(rank->spans, rank->span_count + 1, sizeof *rank->spans);
        if (rank->spans == NULL) die("no memory for %zu partitions", rank->span_count + 1);
        last = &rank->spans[rank->span_count++];
        *last = (struct span){.epoch = block->epoch, .partition = block->partition};
    }
    last->bytes += data_bytes;
    last->end = now;
}

static void take(struct rank *rank, const supply_block_t *block) {
    if (rank->current.elements == 0) rank->current.first = clock_nanos();
    const supply_column_t data = data_column(rank->supply, block);
    uint64_t data_bytes = data.data_bytes;
    if (block->epoch == 0) tally_block(rank, &data);
    if (block->epoch == 0 || rank->consumption == CONSUME_SUM) {
        data_bytes = sum_block(rank, block);
    } else if (rank->consumption == CONSUME_COPY) {
        copy_block(rank, block, &data);
    }
    rank->current.elements += block->element_count;
    add_to_span(rank, block, data_bytes, clock_nanos());
}

static void end_epoch(struct rank *rank, uint32_t epoch) {
    if (epoch == 0) {
        rank->first = rank->current;
    } else {
        const bool read = rank->consumption != CONSUME_RELEASE;
        rank->differing +=
            rank->current.elements != rank->first.elements || (read && rank->current.data != rank->first.data);
    }
    printf("%s%" PRId64, epoch == 0 ? "" : ", ", rank->current.first);
    rank->current = (struct sums){0};
}

static void print_spans(const struct rank *rank) {
    for (size_t i = 0; i < rank->span_count; i++) {
        const struct span *span = &rank->spans[i];
        printf("%s{\"epoch\": %u, \"partition\": %u, \"bytes\": %" PRIu64 ", \"end\": %" PRId64 "}", i == 0 ? "" : ", ",
               span->epoch, span->partition, span->bytes, span->end);
    }
}

int main(int argc, char **argv) {
    messages_from("bench-rank");
    const struct rank_options options = rank_options_parse(argc, argv);
    struct rank rank = {.supply = open_pair(options.local_rank), .consumption = options.consumption};
    supply_status_t status;
    supply_block_t block;
    printf("{\"first_block\": [");
    while ((status = supply_next(rank.supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die_of(rank.supply);
        if (status == SUPPLY_END_OF_EPOCH) {
            end_epoch(&rank, block.epoch);
        } else {
            take(&rank, &block);
            if (supply_release(rank.supply, &block) != SUPPLY_OK) die_of(rank.supply);
        }
    }
    supply_statistics_t statistics;
    supply_statistics(rank.supply, &statistics);
    supply_close(rank.supply);
    printf("], \"received\": ");
    tally_print(&rank.tally);
    printf(", \"data_sum\": %" PRIu64 ", \"differing_epochs\": %" PRIu64 ", \"blocks\": %" PRIu64
           ", \"seconds_waited\": %.6f"
           ", \"peak_bytes\": %" PRIu64 ", \"partitions\": [",
           rank.first.data, rank.differing, statistics.blocks, statistics.seconds_waited, peak_memory());
    print_spans(&rank);
    printf("]}\n");
    free(rank.spans);
    free(rank.copy);
    return 0;
}

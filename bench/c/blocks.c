/**
 * A rank that takes every column of every block and releases the block at once. Epoch 0 is verified. Then each line of
 * stdin is the number of blocks of one measurement.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "pair_options.h"
#include "rounds.h"

enum { FEATURES, LABEL, COLUMNS };

/** What the rank does with the columns of a block. */
enum consumption { TAKE, COPY };

struct rank {
    supply_t *supply;
    enum consumption consumption;
    void *copy;
};

/* False at the end of the epoch and of the data. */
static bool next_block(struct rank *rank, supply_block_t *block, supply_column_t columns[COLUMNS]) {
    const supply_status_t status = supply_next(rank->supply, block);
    if (status < 0) die_of(rank->supply);
    if (status != SUPPLY_OK) return false;
    for (int i = 0; i < COLUMNS; i++)
        if (supply_column(rank->supply, block, i, &columns[i]) != SUPPLY_OK) die_of(rank->supply);
    return true;
}

static void copy(struct rank *rank, const supply_column_t columns[COLUMNS]) {
    uint8_t *to = rank->copy;
    for (int i = 0; i < COLUMNS; i++) {
        memcpy(to, columns[i].data, columns[i].data_bytes);
        __asm__ volatile("" : : "r"(to) : "memory"); /* else the compiler drops a copy that nobody reads */
        to += columns[i].data_bytes;
    }
}

/** Blocks until the end of the epoch, at most `count`. */
static uint64_t take(struct rank *rank, uint64_t count) {
    supply_block_t block;
    supply_column_t columns[COLUMNS];
    uint64_t taken = 0;
    while (taken < count && next_block(rank, &block, columns)) {
        if (rank->consumption == COPY) copy(rank, columns);
        if (supply_release(rank->supply, &block) != SUPPLY_OK) die_of(rank->supply);
        taken++;
    }
    return taken;
}

/** Prints the sums of epoch 0. */
static void verify(struct rank *rank) {
    supply_block_t block;
    supply_column_t columns[COLUMNS];
    uint64_t samples = 0, bytes = 0;
    double features = 0;
    int64_t labels = 0;
    while (next_block(rank, &block, columns)) {
        const float *values = columns[FEATURES].data;
        for (size_t i = 0; i < columns[FEATURES].data_bytes / sizeof *values; i++) features += values[i];
        for (uint32_t i = 0; i < block.element_count; i++) labels += ((const int64_t *)columns[LABEL].data)[i];
        samples += block.element_count;
        if (bytes < block.bytes) bytes = block.bytes;
        if (supply_release(rank->supply, &block) != SUPPLY_OK) die_of(rank->supply);
    }
    if (bytes == 0) die("there is no block in epoch 0");
    rank->copy = malloc(bytes);
    if (rank->copy == NULL) die("no memory for %" PRIu64 " bytes", bytes);
    printf("{\"samples\": %" PRIu64 ", \"features\": %.0f, \"label\": %" PRId64 "}\n", samples, features, labels);
    fflush(stdout);
}

static double seconds_waited(const supply_t *supply) {
    supply_statistics_t statistics;
    supply_get_statistics(supply, &statistics);
    return statistics.seconds_waited;
}

static void measure(struct rank *rank) {
    char line[32];
    while (next_round(line, sizeof line)) {
        const uint64_t count = strtoull(line, NULL, 10);
        const double waited = seconds_waited(rank->supply);
        const struct round round = round_begin();
        /* An epoch may end in between. */
        for (uint64_t taken = 0; taken < count;) taken += take(rank, count - taken);
        const struct round_times times = round_end(round);
        printf("{\"blocks\": %" PRIu64 ", \"nanos\": %" PRId64 ", \"cpu_nanos\": %" PRId64 ", \"waited\": %g}\n", count,
               times.nanos, times.cpu_nanos, seconds_waited(rank->supply) - waited);
        fflush(stdout);
    }
}

static void take_the_rest(struct rank *rank) {
    supply_block_t block;
    supply_status_t status;
    while ((status = supply_next(rank->supply, &block)) != SUPPLY_END_OF_DATA)
        if (status < 0 || (status == SUPPLY_OK && supply_release(rank->supply, &block) != SUPPLY_OK))
            die_of(rank->supply);
}

int main(int argc, char **argv) {
    messages_from("bench-blocks");
    if (argc != 3) die("usage: bench-blocks LOCAL_RANK take|copy");
    struct rank rank = {.supply = open_pair(argv[1]), .consumption = strcmp(argv[2], "copy") == 0 ? COPY : TAKE};
    verify(&rank);
    measure(&rank);
    take_the_rest(&rank);
    supply_close(rank.supply);
    free(rank.copy);
    return 0;
}

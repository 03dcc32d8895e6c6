/**
 * The rank of bench/exchange and bench/feeders. Rank 0 prints a line when all ranks have opened their pairs, and then
 * what each rank has received: pairs and their keys, or the bytes of each epoch, with the time at which each epoch
 * ended.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <supply_remote.h>

#include "checksum.h"
#include "clock.h"
#include "exchange_options.h"
#include "keyed_tally.h"
#include "memory.h"
#include "messages.h"
#include "pair_options.h"
#include "tally.h"

enum { EPOCHS_MAX = 4096 };

struct rank {
    supply_t *supply;
    MPI_Comm ranks; /* without feeders */
    struct exchange_options options;
    struct keyed_tally keyed;
    struct tally first;        /* of epoch 0 */
    uint64_t sums[EPOCHS_MAX]; /* words of each epoch's data */
    int64_t ends[EPOCHS_MAX];
    uint32_t epochs;
};

static void open_exchange(struct rank *rank) {
    supply_options_t options;
    supply_options_init(&options);
    options.exchange = rank->options.exchanged;
    if (supply_remote_open(&rank->supply, MPI_COMM_WORLD, &options, &rank->ranks) != SUPPLY_OK) die_of(rank->supply);
    if (rank->options.exchanged &&
        supply_exchange_open(&rank->supply, rank->ranks, &rank->options.exchange) != SUPPLY_OK)
        die_of(rank->supply);
}

static void take_bytes(struct rank *rank, const supply_block_t *block) {
    const supply_column_t data = data_column(rank->supply, block);
    rank->sums[block->epoch] += sum_of_words(data.data, data.data_bytes);
    for (uint32_t i = 0; block->epoch == 0 && i < data.element_count; i++) {
        const void *address;
        size_t bytes;
        if (supply_value(&data, i, &address, &bytes) != SUPPLY_OK) die("element %u cannot be read", i);
        tally_element(&rank->first, address, bytes);
    }
}

static void take(struct rank *rank, const supply_block_t *block) {
    if (block->epoch >= EPOCHS_MAX) die("there are more than %d epochs", EPOCHS_MAX);
    if (rank->options.consumption == CONSUME_BYTES)
        take_bytes(rank, block);
    else
        keyed_tally_block(&rank->keyed, rank->supply, block, rank->options.consumption == CONSUME_SORTED);
}

static void receive(struct rank *rank) {
    supply_status_t status;
    supply_block_t block;
    while ((status = supply_next(rank->supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die_of(rank->supply);
        if (status == SUPPLY_END_OF_EPOCH) {
            rank->ends[block.epoch] = clock_nanos();
            rank->epochs = block.epoch + 1;
        } else {
            take(rank, &block);
            if (supply_release(rank->supply, &block) != SUPPLY_OK) die_of(rank->supply);
        }
    }
}

static void print_rank(const struct rank *rank, FILE *to) {
    fprintf(to, "{\"peak_bytes\": %" PRIu64 ", ", peak_memory());
    if (rank->options.consumption == CONSUME_BYTES)
        fprintf(to, "\"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"crc_sum\": %" PRIu64, rank->first.elements,
                rank->first.bytes, rank->first.crc_sum);
    else
        keyed_tally_print(&rank->keyed, to);
    for (uint32_t i = 0; i < rank->epochs; i++)
        fprintf(to, "%s%" PRIu64, i == 0 ? ", \"sums\": [" : ", ", rank->sums[i]);
    for (uint32_t i = 0; i < rank->epochs; i++)
        fprintf(to, "%s%" PRId64, i == 0 ? "], \"ends\": [" : ", ", rank->ends[i]);
    fputs("]}", to);
}

/** Prints the texts of all ranks on rank 0: mpirun would mix the lines of ranks. */
static void print_all(const char *text, int length, int number, int ranks, MPI_Comm comm) {
    int lengths[ranks], places[ranks], total = 0;
    MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, comm);
    for (int i = 0; number == 0 && i < ranks; i++) {
        places[i] = total;
        total += lengths[i];
    }
    char *all = malloc((size_t)total + 1);
    if (all == NULL) die("no memory for %d bytes of results", total);
    MPI_Gatherv(text, length, MPI_CHAR, all, lengths, places, MPI_CHAR, 0, comm);
    for (int i = 0; number == 0 && i < ranks; i++)
        printf("%s%.*s%s", i == 0 ? "[" : ", ", lengths[i], all + places[i], i == ranks - 1 ? "]\n" : "");
    free(all);
}

int main(int argc, char **argv) {
    messages_from("bench-exchange");
    struct rank *rank = calloc(1, sizeof *rank);
    if (rank == NULL) die("no memory for the results of %d epochs", EPOCHS_MAX);
    rank->options = exchange_options_parse(argc, argv);
    int number, ranks;
    MPI_Init(NULL, NULL);
    open_exchange(rank);
    MPI_Comm_rank(rank->ranks, &number);
    MPI_Comm_size(rank->ranks, &ranks);
    MPI_Barrier(rank->ranks);
    if (number == 0) puts("{\"ready\": true}");
    fflush(stdout);
    receive(rank);
    supply_close(rank->supply);
    char *text;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL) die("open_memstream: %m");
    print_rank(rank, to);
    fclose(to);
    print_all(text, (int)length, number, ranks, rank->ranks);
    MPI_Comm_free(&rank->ranks);
    MPI_Finalize();
    free(text);
    key_set_free(&rank->keyed.keys);
    free(rank);
    return 0;
}

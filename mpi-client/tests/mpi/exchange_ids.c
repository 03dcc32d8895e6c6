/**
 * Exchanges Datums, and prints what all ranks together have received in each epoch: how many, the sum of their numbers,
 * and the sum of their squares. Usage: exchange-ids all|hash|balance|absent WINDOW_BYTES. absent: rank 1 never opens
 * its exchange, and rank 0 prints how that ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supply_exchange.h"
#include "supply_mpi.h"

enum { ELEMENTS, NUMBERS, SQUARES, BLOCKS, SUMS };

static void fail(int rank, const supply_t *supply) {
    fprintf(stderr, "rank %d: %s\n", rank, supply_error(supply));
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void add(supply_t *supply, const supply_block_t *block, uint64_t *sums) {
    for (uint32_t i = 0; i < block->element_count; i++) {
        supply_datum_t datum;
        if (supply_datum(supply, block, i, &datum) != SUPPLY_OK) fail(-1, supply);
        char key[24];
        snprintf(key, sizeof key, "%d", datum.height);
        if (datum.key_bytes != strlen(key) || memcmp(key, datum.key, datum.key_bytes) != 0) {
            fprintf(stderr, "element %s has the key %.*s\n", key, (int)datum.key_bytes, (const char *)datum.key);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        sums[ELEMENTS]++;
        sums[NUMBERS] += (uint64_t)datum.height;
        sums[SQUARES] += (uint64_t)datum.height * (uint64_t)datum.height;
    }
    sums[BLOCKS]++;
}

static void read_epochs(supply_t *supply, int rank) {
    supply_status_t status = SUPPLY_OK;
    uint64_t mine[SUMS] = {0}, all[SUMS];
    while (status != SUPPLY_END_OF_DATA) {
        supply_block_t block;
        status = supply_next(supply, &block);
        if (status < 0) fail(rank, supply);
        if (status == SUPPLY_OK) {
            add(supply, &block, mine);
            supply_release(supply, &block);
        }
        if (status != SUPPLY_END_OF_EPOCH) continue;
        MPI_Reduce(mine, all, SUMS, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("epoch %u: %" PRIu64 " elements, sum %" PRIu64 ", squares %" PRIu64 "\n", block.epoch, all[ELEMENTS],
                   all[NUMBERS], all[SQUARES]);
        memset(mine, 0, sizeof mine);
    }
}

/* MPI cannot finish: its duplicate of the communicator never will be. */
static void leave_without_exchange(supply_t *supply, int rank, supply_status_t status) {
    if (rank == 0) printf("%s: %s\n", supply_status_name(status), supply_error(supply));
    fflush(stdout);
    supply_close(supply);
    MPI_Barrier(MPI_COMM_WORLD);
    _Exit(0);
}

int main(int argc, char **argv) {
    static const char *const policies[] = {"", "all", "hash", "balance"};
    MPI_Init(&argc, &argv);
    supply_options_t options;
    supply_options_init(&options);
    supply_options_from_comm(&options, MPI_COMM_WORLD);
    options.exchange = true;
    supply_t *supply;
    if (argc != 3) return 2;
    if (supply_open(&supply, &options) != SUPPLY_OK) fail(options.rank, supply);

    supply_exchange_options_t exchange;
    supply_exchange_options_init(&exchange);
    exchange.policy = SUPPLY_EXCHANGE_ALL;
    for (int policy = SUPPLY_EXCHANGE_ALL; policy <= SUPPLY_EXCHANGE_BALANCE; policy++)
        if (strcmp(argv[1], policies[policy]) == 0) exchange.policy = (supply_exchange_policy_t)policy;
    if (exchange.policy == SUPPLY_EXCHANGE_HASH) exchange.column = "label";
    exchange.window_bytes = (size_t)atoll(argv[2]);

    const bool is_absent = strcmp(argv[1], "absent") == 0;
    supply_status_t status = SUPPLY_OK;
    if (!is_absent || options.rank == 0) status = supply_exchange_open(&supply, MPI_COMM_WORLD, &exchange);
    if (is_absent) leave_without_exchange(supply, options.rank, status);
    if (status != SUPPLY_OK) fail(options.rank, supply);
    read_epochs(supply, options.rank);
    if (supply_close(supply) != SUPPLY_OK) fail(options.rank, NULL);
    MPI_Finalize();
}

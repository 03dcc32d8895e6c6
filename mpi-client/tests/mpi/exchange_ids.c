/**
 * Exchanges Datums, and prints what all ranks together have received in each epoch: how many, the sum of their numbers,
 * and the sum of their squares. Usage: exchange-ids all|hash|balance|absent|interrupted WINDOW_BYTES. absent: rank 1
 * never opens its exchange, and rank 0 prints how that ends. interrupted: the same, and rank 0 does not wait for it.
 * exchange-ids before|after: opens it before MPI_Init(), or after MPI_Finalize().
 * A third argument: single: MPI is for one thread. closes, forgets: after the first block, the rank closes the handle
 * before MPI_Finalize(), or after it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datum_sums.h"
#include "supply_exchange.h"
#include "supply_mpi.h"

static void fail(int rank, const supply_t *supply) {
    fprintf(stderr, "rank %d: %s\n", rank, supply_error(supply));
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void read_epochs(supply_t *supply, int rank) {
    supply_status_t status = SUPPLY_OK;
    struct datum_sums sums = {0};
    while (status != SUPPLY_END_OF_DATA) {
        supply_block_t block;
        status = supply_next(supply, &block);
        if (status < 0) fail(rank, supply);
        if (status == SUPPLY_OK) {
            datum_sums_add(&sums, supply, &block);
            supply_release(supply, &block);
        }
        if (status == SUPPLY_END_OF_EPOCH) datum_sums_print(&sums, block.epoch, MPI_COMM_WORLD);
    }
}

/* The exchange's thread is somewhere in the next window. */
static int leave_after_a_block(supply_t *supply, int rank, bool closes) {
    supply_block_t block;
    if (supply_next(supply, &block) != SUPPLY_OK) fail(rank, supply);
    if (closes && supply_close(supply) != SUPPLY_OK) return 1;
    MPI_Finalize();
    if (!closes && supply_close(supply) != SUPPLY_OK) return 1;
    puts("left");
    return 0;
}

static bool ends_waits(void *unused) {
    (void)unused;
    return true;
}

/* MPI cannot finish: its duplicate of the communicator never will be. */
static void leave_without_exchange(supply_t *supply, int rank, supply_status_t status) {
    supply_block_t block;
    if (rank == 0) {
        printf("%s: %s\n", supply_status_name(status), supply_error(supply));
        printf("then %s\n", supply_status_name(supply_next(supply, &block)));
    }
    fflush(stdout);
    supply_close(supply);
    MPI_Barrier(MPI_COMM_WORLD);
    _Exit(0);
}

static int open_without_mpi(void) {
    supply_options_t options;
    supply_options_init(&options);
    options.rank = options.local_rank = 0;
    options.exchange = true;
    supply_t *supply;
    if (supply_open(&supply, &options) != SUPPLY_OK) {
        fprintf(stderr, "%s\n", supply_error(supply));
        return 1;
    }
    const supply_status_t status = supply_exchange_open(&supply, MPI_COMM_WORLD, NULL);
    printf("%s: %s\n", supply_status_name(status), supply_error(supply));
    return supply_close(supply) != SUPPLY_OK;
}

int main(int argc, char **argv) {
    static const char *const policies[] = {"", "all", "hash", "balance"};
    if (argc == 2 && strcmp(argv[1], "before") == 0) return open_without_mpi();
    const char *how = argc == 4 ? argv[3] : "";
    int threads;
    MPI_Init_thread(&argc, &argv, strcmp(how, "single") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &threads);
    if (argc == 2 && strcmp(argv[1], "after") == 0) {
        MPI_Finalize();
        return open_without_mpi();
    }
    supply_options_t options;
    supply_options_init(&options);
    supply_options_from_comm(&options, MPI_COMM_WORLD);
    options.exchange = true;
    supply_t *supply;
    if (argc < 3) return 2;
    const bool is_interrupted = strcmp(argv[1], "interrupted") == 0;
    if (is_interrupted) options.interrupted = ends_waits;
    if (supply_open(&supply, &options) != SUPPLY_OK) fail(options.rank, supply);

    supply_exchange_options_t exchange;
    supply_exchange_options_init(&exchange);
    exchange.policy = SUPPLY_EXCHANGE_ALL;
    for (int policy = SUPPLY_EXCHANGE_ALL; policy <= SUPPLY_EXCHANGE_BALANCE; policy++)
        if (strcmp(argv[1], policies[policy]) == 0) exchange.policy = (supply_exchange_policy_t)policy;
    if (exchange.policy == SUPPLY_EXCHANGE_HASH) exchange.column = "label";
    exchange.window_bytes = (size_t)atoll(argv[2]);

    const bool is_absent = is_interrupted || strcmp(argv[1], "absent") == 0;
    supply_status_t status = SUPPLY_OK;
    if (!is_absent || options.rank == 0) status = supply_exchange_open(&supply, MPI_COMM_WORLD, &exchange);
    if (is_absent) leave_without_exchange(supply, options.rank, status);
    if (status == SUPPLY_OK) status = supply_wait_schema(supply);
    if (status != SUPPLY_OK) fail(options.rank, supply);
    const bool closes = strcmp(how, "closes") == 0;
    if (closes || strcmp(how, "forgets") == 0) return leave_after_a_block(supply, options.rank, closes);
    read_epochs(supply, options.rank);
    if (supply_close(supply) != SUPPLY_OK) fail(options.rank, NULL);
    MPI_Finalize();
}

/**
 * Reads Datums that feeders send, and prints what all ranks together have received in each epoch.
 *
 * Usage: remote-ids MODE, one of
 * read|schema|exchange|sorted|turns|child|stop|leave|early|interrupted|forget|gap|twice|before|position=TEXT.
 * schema: waits for it first, as exchange and sorted do. stop: rank 0 aborts its pair after a block. early: it closes
 * it after a block. leave: it exits after a block. interrupted: all waits are interrupted after a block, and rank 0
 * aborts. forget: nobody closes. gap: a rank polls once, and again after two seconds. sorted: sorts by the label.
 * child: a forked child closes its copy of the handle after a block. twice: the ranks open once more. position: all
 * begin there. turns: says that it may exchange, and prints where each block is from. before: opens before MPI_Init(),
 * and prints how that ends.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datum_sums.h"
#include "supply_exchange.h"
#include "supply_remote.h"

static MPI_Comm ranks = MPI_COMM_NULL;
static bool is_interrupted;
static int rank;
static const char *mode;

_Noreturn static void fail(supply_t *supply, supply_status_t status) {
    fprintf(stderr, "rank %d: %s: %s\n", rank, supply_status_name(status), supply_error(supply));
    fflush(stderr);
    supply_close(supply);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* exit() without MPI_Finalize(), which a child must not call. */
static void close_in_child(supply_t *supply) {
    const pid_t child = fork();
    if (child == 0) _exit(supply_close(supply) == SUPPLY_OK ? 0 : 1);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) MPI_Abort(MPI_COMM_WORLD, 6);
}

/* After the first block, rank 0 does what its mode says. */
static void leave(supply_t *supply) {
    if (rank != 0) return;
    if (strcmp(mode, "leave") == 0) _exit(3);
    if (strcmp(mode, "child") == 0) close_in_child(supply);
    is_interrupted = strcmp(mode, "interrupted") == 0;
    const bool stops = is_interrupted || strcmp(mode, "stop") == 0;
    if (stops) supply_abort(supply, "the test stops this rank");
    if (strcmp(mode, "early") == 0) supply_close(supply);
    if (!stops && strcmp(mode, "early") != 0) return;
    printf("rank 0 has closed its pair\n");
    fflush(stdout);
    sleep(1); /* the others learn it from Spark */
    MPI_Abort(MPI_COMM_WORLD, 4);
}

static void print_position(const supply_t *supply) {
    supply_position_t position;
    char text[SUPPLY_POSITION_TEXT_BYTES];
    if (supply_position_save(supply, &position) != SUPPLY_OK) return;
    supply_position_to_text(&position, text, sizeof text);
    if (rank == 0) printf("position %s\n", text);
}

/* The reports of a slow Spark that come during the gap are out of date after it. */
static void poll_with_gap(supply_t *supply) {
    supply_block_t block;
    if (supply_try_next(supply, &block) != SUPPLY_AGAIN) return;
    sleep(2);
    const supply_status_t status = supply_try_next(supply, &block);
    if (status == SUPPLY_OK) supply_release(supply, &block);
    printf("after the gap: %s\n", status < 0 ? supply_error(supply) : "no failure");
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 5);
}

static bool asks_for_end(void *unused) {
    (void)unused;
    return is_interrupted;
}

static void open_again(void) {
    supply_t *supply;
    MPI_Comm again;
    const supply_status_t status = supply_remote_open(&supply, MPI_COMM_WORLD, NULL, &again);
    if (rank == 0) printf("again: %s: %s\n", supply_status_name(status), supply_error(supply));
    supply_close(supply);
}

static void read_all(supply_t *supply) {
    supply_status_t status;
    struct datum_sums sums = {0};
    do {
        supply_block_t block;
        status = supply_next(supply, &block);
        if (status < 0) fail(supply, status);
        if (status == SUPPLY_OK) {
            datum_sums_add(&sums, supply, &block);
            if (strcmp(mode, "turns") == 0) printf("partition %" PRIu32 "\n", block.partition);
            supply_release(supply, &block);
            if (strncmp(mode, "position", 8) == 0 || strcmp(mode, "sorted") == 0) print_position(supply);
            leave(supply);
        }
        if (status == SUPPLY_END_OF_EPOCH) datum_sums_print(&sums, block.epoch, ranks);
    } while (status != SUPPLY_END_OF_DATA);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    mode = argv[1];
    if (strcmp(mode, "before") != 0) MPI_Init(&argc, &argv);
    supply_options_t options;
    supply_options_init(&options);
    const bool exchanges = strcmp(mode, "exchange") == 0 || strcmp(mode, "sorted") == 0;
    options.exchange = exchanges || strcmp(mode, "turns") == 0;
    options.interrupted = asks_for_end;
    supply_position_t position;
    if (strncmp(mode, "position=", 9) == 0 && supply_position_from_text(&position, mode + 9) == SUPPLY_OK)
        options.position = &position;
    supply_t *supply;
    supply_status_t status = supply_remote_open(&supply, MPI_COMM_WORLD, &options, &ranks);
    if (strcmp(mode, "before") == 0) {
        printf("%s: %s\n", supply_status_name(status), supply_error(supply));
        return 0;
    }
    if (ranks != MPI_COMM_NULL) MPI_Comm_rank(ranks, &rank);
    supply_exchange_options_t exchange;
    supply_exchange_options_init(&exchange);
    exchange.policy = strcmp(mode, "sorted") == 0 ? SUPPLY_EXCHANGE_RANGE : SUPPLY_EXCHANGE_ALL;
    if (exchange.policy == SUPPLY_EXCHANGE_RANGE) exchange.column = "label";
    if (status == SUPPLY_OK && exchanges) status = supply_exchange_open(&supply, ranks, &exchange);
    if (status == SUPPLY_OK && (exchanges || strcmp(mode, "schema") == 0)) status = supply_wait_schema(supply);
    if (status != SUPPLY_OK) fail(supply, status);
    if (strcmp(mode, "gap") == 0) poll_with_gap(supply);
    read_all(supply);
    if (strcmp(mode, "forget") != 0) status = supply_close(supply);
    if (strcmp(mode, "twice") == 0) open_again();
    if (status != SUPPLY_OK) fprintf(stderr, "rank %d: closing: %s\n", rank, supply_status_name(status));
    if (rank == 0) printf("closed\n");
    MPI_Comm_free(&ranks);
    MPI_Finalize();
    return status != SUPPLY_OK;
}

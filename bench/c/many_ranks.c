/**
 * One process that stands for many ranks of a node: it opens the pairs of COUNT ranks from rank FIRST on, reads all of
 * them, and prints when what happened. Rank FAILING fails at its first block; -1: none does.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "clock.h"
#include "files/config_files.h"
#include "messages.h"
#include "pair_options.h"

/* How long poll() may sleep: not every event wakes it. */
#define PAUSE_MILLISECONDS 100

struct rank {
    supply_t *supply;
    enum { READING, AT_END, CLOSED } state;
    int64_t first_block; /* when; 0: none has come */
    int64_t end;         /* when the end of the data, or the failure, has come */
    bool failed;
    uint64_t elements;
};

static struct rank *ranks;
static struct pollfd *pollers;
static int first_rank, count, failing;
static int64_t failure; /* when rank `failing` failed */

static void allow_descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Ranks read the config files on their own, at the same time. One process reads them once. */
static void open_all(void) {
    struct config_lines config;
    struct failure failure;
    if (supply__config_read(getenv("SUPPLY_MAPPED_FILES"), getenv("SUPPLY_NAMED_PIPES"), &config, &failure) !=
        SUPPLY_OK)
        die("%s", failure.text);
    if (config.count < (size_t)first_rank + (size_t)count) die("the config files have only %zu lines", config.count);
    for (int i = 0; i < count; i++) {
        const struct config_line *line = &config.lines[first_rank + i];
        supply_options_t options;
        supply_options_init(&options);
        options.rank = options.local_rank = first_rank + i;
        options.mapped_file = line->mapped_file.path;
        options.request_pipe = line->request_pipe.path;
        options.notification_pipe = line->notification_pipe.path;
        options.ring_bytes = line->ring_bytes;
        options.block_bytes = line->block_bytes;
        if (supply_open(&ranks[i].supply, &options) != SUPPLY_OK) die_of(ranks[i].supply);
    }
    supply__config_free(&config);
}

static void close_failed(struct rank *rank) {
    supply_abort(rank->supply, "the benchmark ends this rank");
    rank->state = CLOSED;
}

/* Reads what there is. */
static void read_rank(struct rank *rank) {
    supply_block_t block;
    supply_status_t status;
    while ((status = supply_try_next(rank->supply, &block)) == SUPPLY_OK || status == SUPPLY_END_OF_EPOCH) {
        if (status == SUPPLY_END_OF_EPOCH) continue;
        if (rank->first_block == 0) rank->first_block = clock_nanos();
        rank->elements += block.element_count;
        if (supply_release(rank->supply, &block) != SUPPLY_OK) die_of(rank->supply);
        if (first_rank + (rank - ranks) != failing) continue;
        failure = rank->end = clock_nanos();
        close_failed(rank);
        return;
    }
    if (status == SUPPLY_AGAIN) return;
    rank->end = clock_nanos();
    rank->failed = status < 0;
    if (rank->failed)
        close_failed(rank);
    else
        rank->state = AT_END;
}

static void close_rank(struct rank *rank) {
    char text[SUPPLY_TEXT_BYTES];
    const supply_status_t status = supply_close_within(rank->supply, 0, text);
    if (status == SUPPLY_AGAIN) return;
    if (status != SUPPLY_OK) die("rank %d was not closed: %s", first_rank + (int)(rank - ranks), text);
    rank->state = CLOSED;
}

/* Returns how many ranks are not closed. */
static int advance_all(void) {
    int open = 0;
    for (int i = 0; i < count; i++) {
        if (ranks[i].state == READING) read_rank(&ranks[i]);
        if (ranks[i].state == AT_END) close_rank(&ranks[i]);
        pollers[i] =
            (struct pollfd){.fd = ranks[i].state == CLOSED ? -1 : supply_fd(ranks[i].supply), .events = POLLIN};
        open += ranks[i].state != CLOSED;
    }
    return open;
}

static void print(int64_t start, int64_t opened) {
    int64_t first = INT64_MAX, last_first = 0, last_end = 0;
    uint64_t elements = 0;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        if (ranks[i].first_block != 0 && ranks[i].first_block < first) first = ranks[i].first_block;
        if (ranks[i].first_block > last_first) last_first = ranks[i].first_block;
        if (ranks[i].end > last_end) last_end = ranks[i].end;
        elements += ranks[i].elements;
        failed += ranks[i].failed;
    }
    printf("{\"ranks\": %d, \"failed\": %d, \"elements\": %" PRIu64 ", \"start\": %" PRId64 ", \"opened\": %" PRId64
           ", \"first_block\": %" PRId64 ", \"last_first_block\": %" PRId64 ", \"end\": %" PRId64
           ", \"failure\": %" PRId64 "}\n",
           count, failed, elements, start, opened, first, last_first, last_end, failure);
}

int main(int argc, char **argv) {
    messages_from("bench-many-ranks");
    if (argc != 4) die("usage: bench-many-ranks FIRST COUNT FAILING");
    first_rank = atoi(argv[1]);
    count = atoi(argv[2]);
    failing = atoi(argv[3]);
    ranks = calloc((size_t)count, sizeof *ranks);
    pollers = calloc((size_t)count, sizeof *pollers);
    if (ranks == NULL || pollers == NULL) die("no memory for %d ranks", count);
    allow_descriptors();
    const int64_t start = clock_nanos();
    open_all();
    const int64_t opened = clock_nanos();
    fputs("bench-many-ranks: ready\n", stderr);
    while (advance_all() > 0) poll(pollers, (nfds_t)count, PAUSE_MILLISECONDS);
    print(start, opened);
    return 0;
}

/**
 * The rank of bench/exchange: it takes pairs that the ranks exchange by the hash (groups) or the order (sorted) of
 * their keys, and counts them and their keys. Rank 0 prints a line when all ranks have opened their pairs, and then
 * what each rank has received, for comparison with Spark's counts (Keyed.scala).
 *
 * plain: without an exchange. copied: the same, and each value is first copied, in another order than it comes: what an
 * exchange must do at least. all: in a random order.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <supply_exchange.h>
#include <supply_mpi.h>

#include "bench.h"
#include "pair.h"

/* Spark's memory holds all pairs, too. */
#define SORT_MEMORY ((size_t)8 << 30)
enum { FIRST_CAPACITY = 1 << 16 };
/* As large as what a rank receives into. */
#define COPY_BYTES ((size_t)24 << 20)
/* Larger than any block's number of elements. */
#define COPY_PRIME UINT64_C(2654435761)

/** Keys that were seen. */
struct key_set {
    int64_t *keys;
    uint8_t *taken;
    size_t count, capacity; /* capacity: a power of two, or 0 */
};

/** What a rank has received. */
struct received {
    uint64_t elements;
    uint64_t groups;  /* keys that differ: of all keys, or if they are sorted, from the key before */
    uint64_t key_sum; /* modulo 2^64, as all sums */
    uint64_t bound;   /* of (2 * key + 1) * the sum of its value's words: ties each value to its key */
    int64_t first_key, last_key;
    uint64_t descents; /* keys below the key before */
    int64_t end;       /* when the data ended */
};

static void key_set_insert(struct key_set *set, int64_t key) {
    /* The product's high bits depend on all bits of the key. */
    size_t place = (size_t)(((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (set->capacity - 1);
    while (set->taken[place]) {
        if (set->keys[place] == key) return;
        place = (place + 1) & (set->capacity - 1);
    }
    set->keys[place] = key;
    set->taken[place] = 1;
    set->count++;
}

static void key_set_add(struct key_set *set, int64_t key) {
    if (2 * set->count >= set->capacity) {
        const size_t capacity = set->capacity == 0 ? FIRST_CAPACITY : 2 * set->capacity;
        struct key_set larger = {malloc(capacity * sizeof(int64_t)), calloc(capacity, 1), 0, capacity};
        if (larger.keys == NULL || larger.taken == NULL) die("no memory for %zu keys", capacity);
        for (size_t i = 0; i < set->capacity; i++)
            if (set->taken[i]) key_set_insert(&larger, set->keys[i]);
        free(set->keys);
        free(set->taken);
        *set = larger;
    }
    key_set_insert(set, key);
}

/* Of `copied`: where values are copied to. */
static uint8_t *copy;

static const void *copied(const void *value, size_t bytes) {
    static size_t at;
    if (at + bytes > COPY_BYTES) at = 0;
    at += bytes;
    return memcpy(copy + at - bytes, value, bytes);
}

/* keys: NULL if they are sorted, or not counted. */
static void take(struct received *received, struct key_set *keys, supply_t *supply, const supply_block_t *block) {
    const supply_column_t key = column_named(supply, block, "key"), value = column_named(supply, block, "value");
    for (uint32_t i = 0; i < block->element_count; i++) {
        const uint32_t index = copy != NULL ? (uint32_t)(i * COPY_PRIME % block->element_count) : i;
        const int64_t one = ((const int64_t *)key.data)[index];
        size_t bytes;
        const void *address = value_of(&value, index, &bytes);
        if (copy != NULL) address = copied(address, bytes);
        if (received->elements == 0) received->first_key = one;
        if (keys == NULL)
            received->groups += received->elements == 0 || one != received->last_key;
        else
            key_set_add(keys, one);
        received->descents += received->elements > 0 && one < received->last_key;
        received->last_key = one;
        received->elements++;
        received->key_sum += (uint64_t)one;
        received->bound += (2 * (uint64_t)one + 1) * sum_of_words(address, bytes);
    }
}

static void receive(supply_t *supply, struct received *received, bool sorted) {
    struct key_set keys = {0};
    supply_status_t status;
    supply_block_t block;
    while ((status = supply_next(supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die_of(supply);
        if (status == SUPPLY_END_OF_EPOCH) continue;
        take(received, sorted ? NULL : &keys, supply, &block);
        if (supply_release(supply, &block) != SUPPLY_OK) die_of(supply);
    }
    received->groups += keys.count;
    received->end = clock_nanos();
    free(keys.keys);
    free(keys.taken);
}

static void print(const struct received *all, int ranks) {
    for (int i = 0; i < ranks; i++)
        printf("%s{\"elements\": %" PRIu64 ", \"groups\": %" PRIu64 ", \"key_sum\": %" PRIu64 ", \"bound\": %" PRIu64
               ", \"first_key\": %" PRId64 ", \"last_key\": %" PRId64 ", \"descents\": %" PRIu64 ", \"end\": %" PRId64
               "}",
               i == 0 ? "[" : ", ", all[i].elements, all[i].groups, all[i].key_sum, all[i].bound, all[i].first_key,
               all[i].last_key, all[i].descents, all[i].end);
    puts("]");
}

int main(int argc, char **argv) {
    messages_from("bench-exchange");
    if (argc != 2) die("usage: bench-exchange groups|sorted|plain|copied|all");
    const bool sorted = strcmp(argv[1], "sorted") == 0;
    const bool is_copied = strcmp(argv[1], "copied") == 0, is_all = strcmp(argv[1], "all") == 0;
    const bool exchanges = !is_copied && strcmp(argv[1], "plain") != 0;
    if (is_copied && (copy = calloc(1, COPY_BYTES)) == NULL) die("no memory to copy to");
    supply_options_t options;
    supply_options_init(&options);
    options.exchange = exchanges;
    supply_exchange_options_t exchange;
    supply_exchange_options_init(&exchange);
    exchange.column = "key";
    exchange.policy = sorted ? SUPPLY_EXCHANGE_RANGE : SUPPLY_EXCHANGE_HASH;
    if (sorted) exchange.memory_bytes = SORT_MEMORY;
    if (is_all) {
        exchange.policy = SUPPLY_EXCHANGE_ALL;
        exchange.column = NULL;
    }

    supply_t *supply;
    const MPI_Comm comm = MPI_COMM_WORLD;
    int number, ranks, threads;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads);
    supply_options_from_comm(&options, comm);
    if (supply_open(&supply, &options) != SUPPLY_OK ||
        (exchanges && supply_exchange_open(&supply, comm, &exchange) != SUPPLY_OK))
        die_of(supply);
    MPI_Comm_rank(comm, &number);
    MPI_Comm_size(comm, &ranks);
    MPI_Barrier(comm);
    if (number == 0) puts("{\"ready\": true}");
    fflush(stdout);
    struct received received = {0}, *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) die("no memory for the results of %d ranks", ranks);
    receive(supply, &received, sorted || is_all || !exchanges);
    supply_close(supply);
    MPI_Gather(&received, sizeof received, MPI_BYTE, all, sizeof received, MPI_BYTE, 0, comm);
    if (number == 0) print(all, ranks);
    free(all);
    MPI_Finalize();
    return 0;
}

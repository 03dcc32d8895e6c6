/*
 * Groups by a key: all elements with the same key arrive on the same rank, which counts its distinct keys and its
 * elements. Spark supplies the rows of a DataFrame. Usage: group-by-key COLUMN
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <supply_exchange.h>
#include <supply_mpi.h>

/* The distinct keys of this rank: an open hash table of copies. */
struct keys {
    struct key {
        void *data;
        size_t bytes;
    } *slots;
    size_t capacity; /* a power of two */
    size_t count;
};

static void fail(const char *what) {
    fprintf(stderr, "group-by-key: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* The slot of the key, or the free one in which it belongs. FNV-1a. */
static struct key *find(const struct keys *keys, const void *data, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    size_t at = hash & (keys->capacity - 1);
    while (keys->slots[at].data != NULL &&
           (keys->slots[at].bytes != bytes || memcmp(keys->slots[at].data, data, bytes) != 0))
        at = (at + 1) & (keys->capacity - 1);
    return &keys->slots[at];
}

static void grow(struct keys *keys) {
    const struct keys old = *keys;
    keys->capacity = old.capacity ? 2 * old.capacity : 1024;
    keys->slots = calloc(keys->capacity, sizeof *keys->slots);
    if (keys->slots == NULL) fail("out of memory");
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].data != NULL) *find(keys, old.slots[i].data, old.slots[i].bytes) = old.slots[i];
    free(old.slots);
}

static void count_key(struct keys *keys, const void *data, size_t bytes) {
    if (2 * keys->count >= keys->capacity) grow(keys);
    struct key *key = find(keys, data, bytes);
    if (key->data != NULL) return;
    key->data = malloc(bytes + 1);
    if (key->data == NULL) fail("out of memory");
    memcpy(key->data, data, bytes);
    key->bytes = bytes;
    keys->count++;
}

/* A key is a value of any length, or a number of any fixed width. */
static void count_block(struct keys *keys, const supply_column_t *column) {
    const size_t width = column->data_bytes / column->element_count;
    if (column->offsets == NULL && width == 0) fail("a key of bits has only two values");
    for (uint32_t i = 0; i < column->element_count; i++) {
        const void *data = (const uint8_t *)column->data + i * width;
        size_t bytes = width;
        if (column->offsets != NULL && supply_value(column, i, &data, &bytes) != SUPPLY_OK) fail("a value has changed");
        count_key(keys, data, bytes);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 2) fail("usage: group-by-key COLUMN");
    supply_options_t options;
    supply_options_init(&options);
    supply_options_from_comm(&options, MPI_COMM_WORLD);
    options.exchange = true;
    supply_exchange_options_t exchange;
    supply_exchange_options_init(&exchange);
    exchange.policy = SUPPLY_EXCHANGE_HASH;
    exchange.column = argv[1];
    supply_t *supply;
    supply_open(&supply, &options);
    supply_exchange_open(&supply, MPI_COMM_WORLD, &exchange);

    struct keys keys = {0};
    uint64_t mine[2] = {0, 0}, all[2];
    supply_block_t block;
    while (supply_next(supply, &block) == SUPPLY_OK) {
        supply_column_t column;
        if (supply_column_named(supply, &block, argv[1], NULL, &column) != SUPPLY_OK) break;
        count_block(&keys, &column);
        mine[1] += block.element_count;
        supply_release(supply, &block);
    }
    if (supply_status(supply) == SUPPLY_END_OF_EPOCH) supply_skip_rest(supply); /* one epoch is enough */
    char why[SUPPLY_TEXT_BYTES];
    if (supply_finish(supply, why) < 0) fail(why);
    mine[0] = keys.count;
    printf("rank %d: %" PRIu64 " keys, %" PRIu64 " elements\n", options.rank, mine[0], mine[1]);
    MPI_Reduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (options.rank == 0) printf("total: %" PRIu64 " keys, %" PRIu64 " elements\n", all[0], all[1]);
    for (size_t i = 0; i < keys.capacity; i++) free(keys.slots[i].data);
    free(keys.slots);
    MPI_Finalize();
}

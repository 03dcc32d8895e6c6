/**
 * Checks N keys that are spread over the ranks: check-keys PORTION N FORMAT SAME. Each is its number, as "l" or "u", or
 * half of it in 4 or 6 bytes, as "z", but the last SAME ones are as the first. Prints what is wrong, or "unique", and
 * the time it took.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unique_keys.h"

static void add(struct growing *memory, const void *data, size_t bytes) {
    memcpy(growing_add(memory, bytes), data, bytes);
}

static void add_key(struct keys *keys, uint64_t number) {
    char text[64];
    const uint64_t half = number / 2;
    keys->count++;
    if (strcmp(keys->format, "l") == 0) {
        add(&keys->values, &number, sizeof number);
        return;
    }
    if (strcmp(keys->format, "z") == 0)
        add(&keys->values, &half, number % 2 == 0 ? 4 : 6);
    else
        add(&keys->values, text, (size_t)snprintf(text, sizeof text, "key number %" PRIu64, number));
    add(&keys->ends, &(uint64_t){keys->values.bytes}, sizeof(uint64_t));
}

int main(int argc, char **argv) {
    struct ranks ranks;
    struct progress progress = {0};
    char text[SUPPLY_TEXT_BYTES];
    MPI_Init(&argc, &argv);
    ranks_init(&ranks);
    if (argc < 5) MPI_Abort(ranks.comm, 2);
    const uint64_t count = strtoull(argv[2], NULL, 10), same = strtoull(argv[4], NULL, 10);
    struct keys *keys = keys_new();
    snprintf(keys->format, sizeof keys->format, "%s", argv[3]);
    for (uint64_t i = (uint64_t)ranks.rank; i < count; i += (uint64_t)ranks.count)
        add_key(keys, i + same < count ? i : 0);
    const double begin = MPI_Wtime();
    const bool unique = keys_are_unique(keys, &ranks, strtoull(argv[1], NULL, 10), &progress, text);
    printf("rank %d: %s\n", ranks.rank, unique ? "unique" : text);
    fprintf(stderr, "%.3f s in %" PRIu64 " portions\n", MPI_Wtime() - begin, (uint64_t)progress.of);
    keys_release(keys);
    MPI_Finalize();
    return 0;
}

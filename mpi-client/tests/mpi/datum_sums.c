#include "datum_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(struct datum_sums *sums, uint64_t number) {
    sums->elements++;
    sums->numbers += number;
    sums->squares += number * number;
}

void datum_sums_add(struct datum_sums *sums, supply_t *supply, const supply_block_t *block) {
    for (uint32_t i = 0; i < block->element_count; i++) {
        supply_datum_t datum;
        if (supply_datum(supply, block, i, &datum) != SUPPLY_OK) {
            fprintf(stderr, "element %u: %s\n", i, supply_error(supply));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        char key[24];
        snprintf(key, sizeof key, "%d", datum.height);
        if (datum.key_bytes != strlen(key) || memcmp(key, datum.key, datum.key_bytes) != 0) {
            fprintf(stderr, "element %s has the key %.*s\n", key, (int)datum.key_bytes, (const char *)datum.key);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        add(sums, (uint64_t)datum.height);
    }
}

void datum_sums_print(struct datum_sums *sums, uint32_t epoch, MPI_Comm ranks) {
    const uint64_t mine[] = {sums->elements, sums->numbers, sums->squares};
    uint64_t all[3];
    int rank;
    MPI_Comm_rank(ranks, &rank);
    MPI_Reduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, 0, ranks);
    if (rank == 0)
        printf("epoch %u: %" PRIu64 " elements, sum %" PRIu64 ", squares %" PRIu64 "\n", epoch, all[0], all[1], all[2]);
    *sums = (struct datum_sums){0};
}

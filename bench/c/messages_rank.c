/**
 * The baseline of bench/feeders: process 0 sends blocks of its memory, process 1 receives them into a ring and reads
 * every byte, as a feeder and its rank do, without Spark. Process 1 prints a line when both are there, and then how
 * long BLOCKS blocks took. Arguments: BLOCK_BYTES SLOTS BLOCKS.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "messages.h"

static char *ring;
static MPI_Request *requests;
static size_t block_bytes;
static int slots, blocks;

static void begin(int block, bool sends) {
    char *slot = ring + (size_t)(block % slots) * block_bytes;
    MPI_Request *request = &requests[block % slots];
    if (sends)
        MPI_Issend(slot, (int)block_bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(slot, (int)block_bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, request);
}

/* Returns the sum of all words that were received. */
static uint64_t move(bool sends) {
    uint64_t sum = 0;
    for (int block = 0; block < slots && block < blocks; block++) begin(block, sends);
    for (int block = 0; block < blocks; block++) {
        MPI_Wait(&requests[block % slots], MPI_STATUS_IGNORE);
        if (!sends) sum += sum_of_words(ring + (size_t)(block % slots) * block_bytes, block_bytes);
        if (block + slots < blocks) begin(block + slots, sends);
    }
    return sum;
}

int main(int argc, char **argv) {
    messages_from("bench-messages");
    if (argc != 4) die("usage: bench-messages BLOCK_BYTES SLOTS BLOCKS");
    block_bytes = strtoul(argv[1], NULL, 10);
    slots = atoi(argv[2]);
    blocks = atoi(argv[3]);
    ring = malloc((size_t)slots * block_bytes);
    requests = (MPI_Request *)calloc((size_t)slots, sizeof(MPI_Request));
    if (ring == NULL || requests == NULL) die("no memory for %d blocks", slots);
    memset(ring, 1, (size_t)slots * block_bytes);
    int process;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &process);
    MPI_Barrier(MPI_COMM_WORLD);
    if (process == 1) puts("{\"ready\": true}");
    fflush(stdout);
    const int64_t start = clock_nanos();
    const uint64_t sum = move(process == 0);
    if (process == 1) printf("{\"nanos\": %" PRId64 ", \"sum\": %" PRIu64 "}\n", clock_nanos() - start, sum);
    MPI_Finalize();
    free((void *)requests);
    free(ring);
    return 0;
}

/**
 * Reads blocks in place, and the same bytes in private memory, as often as it is told. It holds all blocks of the ring but
 * one, copies them once, and measures one or the other whenever a line of stdin says which.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "messages.h"
#include "pair_options.h"
#include "rounds.h"
#include "tally.h"

/** The data of a block: where the rank got it, and its copy. */
struct piece {
    const void *in_place;
    void *private;
    size_t bytes;
};

struct pieces {
    struct piece *piece;
    size_t count;
    uint64_t bytes;
};

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) die("no memory for %zu bytes", bytes);
    return memory;
}

static void take(struct pieces *pieces, supply_t *supply, const supply_block_t *block) {
    const supply_column_t data = data_column(supply, block);
    pieces->piece = realloc(pieces->piece, (pieces->count + 1) * sizeof *pieces->piece);
    if (pieces->piece == NULL) die("no memory for %zu blocks", pieces->count);
    struct piece piece = {.in_place = data.data, .private = allocate(data.data_bytes), .bytes = data.data_bytes};
    memcpy(piece.private, piece.in_place, piece.bytes);
    pieces->piece[pieces->count++] = piece;
    pieces->bytes += piece.bytes;
}

static uint64_t pass(const struct pieces *pieces, bool in_place, bool copy, void *target) {
    uint64_t sum = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->piece[i];
        const void *from = in_place ? piece->in_place : piece->private;
        if (!copy) {
            sum += sum_of_words(from, piece->bytes);
        } else {
            memcpy(target, from, piece->bytes);
            sum += *(const uint64_t *)target;
            __asm__ volatile("" : : "r"(target) : "memory"); /* or the compiler would drop a copy that nobody reads */
        }
    }
    return sum;
}

/** Lines: `in-place|private sum|copy PASSES`. */
static void measure(const struct pieces *pieces, void *target) {
    char line[64], where[16], what[16];
    unsigned passes;
    while (next_round(line, sizeof line)) {
        if (sscanf(line, "%15s %15s %u", where, what, &passes) != 3) die("'%s' is no round", line);
        const bool in_place = strcmp(where, "in-place") == 0, copy = strcmp(what, "copy") == 0;
        uint64_t sum = 0;
        const int64_t start = clock_nanos();
        for (unsigned i = 0; i < passes; i++) sum += pass(pieces, in_place, copy, target);
        answer_round(start, clock_nanos(), pieces->count * passes, pieces->bytes * passes, sum);
    }
}

int main(int argc, char **argv) {
    messages_from("bench-read");
    if (argc != 3) die("usage: bench-read LOCAL_RANK BLOCKS");
    supply_t *supply = open_pair(argv[1]);
    const size_t blocks = strtoul(argv[2], NULL, 10);
    struct pieces pieces = {0};
    struct tally tally = {0};
    supply_block_t block;
    supply_status_t status;
    size_t largest = 0;
    while (pieces.count < blocks) {
        if ((status = supply_next(supply, &block)) != SUPPLY_OK) {
            if (status < 0) die_of(supply);
            die("the data ended after %zu of %zu blocks", pieces.count, blocks);
        }
        take(&pieces, supply, &block);
        const supply_column_t data = data_column(supply, &block);
        for (uint32_t i = 0; i < data.element_count; i++)
            tally_element(&tally, (const char *)data.data + data.offsets[i], (size_t)(data.offsets[i + 1] - data.offsets[i]));
        if (data.data_bytes > largest) largest = data.data_bytes;
    }
    tally_print(&tally);
    printf("\n");
    fflush(stdout);
    void *target = allocate(largest);
    memset(target, 0, largest);
    measure(&pieces, target);
    for (size_t i = 0; i < pieces.count; i++) free(pieces.piece[i].private);
    free(pieces.piece);
    free(target);
    supply_abort(supply, "the benchmark has what it wanted");
    return 0;
}

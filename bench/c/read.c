/**
 * Compares reading blocks in place with reading the same bytes in private memory. It holds the blocks of the ring and
 * copies them once. Each line of stdin asks for one measurement.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "messages.h"
#include "pair_options.h"
#include "rounds.h"
#include "tally.h"

/** The data of a block in the mapped file, and its copy. */
struct piece {
    const void *in_place;
    void *private;
    size_t bytes;
};

struct pieces {
    struct piece *piece;
    size_t count, largest;
    uint64_t bytes;
    bool differs; /* the sums in place and of the copy differ */
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
    if (piece.bytes > pieces->largest) pieces->largest = piece.bytes;
    pieces->differs |= sum_of_words(piece.in_place, piece.bytes) != sum_of_words(piece.private, piece.bytes);
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
            __asm__ volatile("" : : "r"(target) : "memory"); /* else the compiler drops a copy that nobody reads */
        }
    }
    return sum;
}

/** Lines: `in-place|private sum|copy PASSES`. */
static void measure(const struct pieces *pieces, void *target) {
    char line[64], where[16], what[16];
    unsigned passes;
    while (next_round(line, sizeof line)) {
        if (sscanf(line, "%15s %15s %u", where, what, &passes) != 3) die("'%s' is not a round", line);
        const bool in_place = strcmp(where, "in-place") == 0, copy = strcmp(what, "copy") == 0;
        uint64_t sum = 0;
        const struct round round = round_begin();
        for (unsigned i = 0; i < passes; i++) sum += pass(pieces, in_place, copy, target);
        answer_round(round_end(round), pieces->count * passes, pieces->bytes * passes, sum);
    }
}

/* Receives and counts the next block. False at the end of data. */
static bool next_block(supply_t *supply, struct tally *tally, supply_block_t *block) {
    supply_status_t status;
    do status = supply_next(supply, block);
    while (status == SUPPLY_END_OF_EPOCH);
    if (status < 0) die_of(supply);
    if (status == SUPPLY_END_OF_DATA) return false;
    const supply_column_t data = data_column(supply, block);
    for (uint32_t i = 0; i < data.element_count; i++)
        tally_element(tally, (const char *)data.data + data.offsets[i],
                      (size_t)(data.offsets[i + 1] - data.offsets[i]));
    return true;
}

int main(int argc, char **argv) {
    messages_from("bench-read");
    if (argc != 3) die("usage: bench-read LOCAL_RANK BLOCKS");
    supply_t *supply = open_pair(argv[1]);
    const size_t blocks = strtoul(argv[2], NULL, 10);
    supply_block_t *held = allocate(blocks * sizeof *held), block;
    struct pieces pieces = {0};
    struct tally tally = {0};
    while (pieces.count < blocks) {
        if (!next_block(supply, &tally, &held[pieces.count]))
            die("the data ended after %zu of %zu blocks", pieces.count, blocks);
        take(&pieces, supply, &held[pieces.count]);
    }
    printf("{\"blocks\": %zu, \"bytes\": %" PRIu64 "}\n", pieces.count, pieces.bytes);
    fflush(stdout);
    void *target = allocate(pieces.largest);
    memset(target, 0, pieces.largest);
    measure(&pieces, target);
    for (size_t i = 0; i < pieces.count; i++) {
        if (supply_release(supply, &held[i]) != SUPPLY_OK) die_of(supply);
        free(pieces.piece[i].private);
    }
    while (next_block(supply, &tally, &block))
        if (supply_release(supply, &block) != SUPPLY_OK) die_of(supply);
    supply_close(supply);
    printf("{\"received\": ");
    tally_print(&tally);
    printf(", \"differing_epochs\": %d}\n", pieces.differs);
    free(pieces.piece);
    free(held);
    free(target);
    return 0;
}

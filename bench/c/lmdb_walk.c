/**
 * The LMDB baseline: a C program without Spark walks a part of an LMDB of Datums on one core, once in each round.
 * `copy` copies key and data to a ring, as the Spark task does. `sum` reads every byte in place, as a rank that opens
 * the database itself does. The first round also computes the CRCs: do not count it.
 */
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

/* Of protobuf, and of proto/datum.proto. */
enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5, DATA_FIELD = 4 };

struct walk {
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_cursor *cursor;
    MDB_val first_key;
    size_t entries; /* of this part */
    bool copy;
    char *ring;
    size_t ring_bytes, at;
    uint64_t elements, bytes, sum;
};

static uint64_t varint(const uint8_t **at, const uint8_t *end) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return result;
    }
    die("a value is not a Datum");
}

/* Walks all fields of a Datum. Returns its data, or ends the program. */
static const uint8_t *data_of(const MDB_val *value, size_t *bytes) {
    const uint8_t *at = value->mv_data, *const end = at + value->mv_size, *data = end;
    *bytes = 0;
    while (at < end) {
        const uint64_t tag = varint(&at, end);
        uint64_t length = 0;
        switch (tag & 7) {
            case VARINT:
                varint(&at, end);
                break;
            case FIXED64:
                length = 8;
                break;
            case FIXED32:
                length = 4;
                break;
            case LENGTH_DELIMITED:
                length = varint(&at, end);
                if (tag >> 3 != DATA_FIELD) break;
                data = at;
                *bytes = length;
                break;
            default:
                die("a value is not a Datum");
        }
        if (length > (uint64_t)(end - at)) die("a value is not a Datum");
        at += length;
    }
    return data;
}

static void must(int code, const char *what) {
    if (code != MDB_SUCCESS) die("%s: %s", what, mdb_strerror(code));
}

static void open_database(struct walk *walk, const char *path) {
    MDB_dbi database;
    must(mdb_env_create(&walk->environment), "liblmdb");
    must(mdb_env_open(walk->environment, path, MDB_RDONLY | MDB_NOLOCK, 0), path);
    must(mdb_txn_begin(walk->environment, NULL, MDB_RDONLY, &walk->transaction), path);
    must(mdb_dbi_open(walk->transaction, NULL, 0, &database), path);
    must(mdb_cursor_open(walk->transaction, database, &walk->cursor), path);
}

/* Finds part `part` of `parts`. The Supplier splits a database in the same way. */
static void find_part(struct walk *walk, const char *path, size_t part, size_t parts) {
    MDB_stat statistics;
    MDB_val value;
    must(mdb_stat(walk->transaction, 1, &statistics), path);
    const size_t first = statistics.ms_entries * part / parts;
    walk->entries = statistics.ms_entries * (part + 1) / parts - first;
    for (size_t i = 0; i <= first; i++) must(mdb_cursor_get(walk->cursor, &walk->first_key, &value, MDB_NEXT), path);
}

static void *in_ring(struct walk *walk, size_t bytes) {
    if (bytes > walk->ring_bytes) die("an element of %zu bytes does not fit into the ring", bytes);
    if (bytes > walk->ring_bytes - walk->at) walk->at = 0;
    void *place = walk->ring + walk->at;
    walk->at += bytes;
    return place;
}

static void take(struct walk *walk, const MDB_val *key, const MDB_val *value, struct tally *tally) {
    size_t bytes;
    const uint8_t *data = data_of(value, &bytes);
    if (tally != NULL) tally_element(tally, data, bytes);
    if (walk->copy) {
        memcpy(in_ring(walk, key->mv_size), key->mv_data, key->mv_size);
        memcpy(in_ring(walk, bytes), data, bytes);
    } else {
        walk->sum += sum_of_words(data, bytes);
    }
    walk->elements++;
    walk->bytes += bytes;
}

static void walk_part(struct walk *walk, struct tally *tally) {
    MDB_val key = walk->first_key, value;
    walk->elements = walk->bytes = walk->sum = 0;
    for (size_t i = 0; i < walk->entries; i++) {
        must(mdb_cursor_get(walk->cursor, &key, &value, i == 0 ? MDB_SET_KEY : MDB_NEXT), "walking");
        take(walk, &key, &value, tally);
    }
}

int main(int argc, char **argv) {
    messages_from("bench-lmdb");
    if (argc != 6) die("usage: bench-lmdb FOLDER PART PARTS copy|sum RING_BYTES");
    struct walk walk = {.copy = strcmp(argv[4], "copy") == 0, .ring_bytes = strtoul(argv[5], NULL, 10)};
    open_database(&walk, argv[1]);
    find_part(&walk, argv[1], strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    walk.ring = mmap(NULL, walk.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (walk.ring == MAP_FAILED) die("no memory for a ring of %zu bytes", walk.ring_bytes);
    struct tally tally = {0}, *first = &tally;
    while (next_round()) {
        struct round round = round_begin();
        walk_part(&walk, first);
        round_end(&round);
        round_answer(&round, walk.elements, walk.bytes, first != NULL ? tally.crc_sum : walk.sum);
        first = NULL;
    }
    munmap(walk.ring, walk.ring_bytes);
    mdb_cursor_close(walk.cursor);
    mdb_txn_abort(walk.transaction);
    mdb_env_close(walk.environment);
    return 0;
}

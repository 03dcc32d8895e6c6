/**
 * Whether each key names one row, on all ranks together. Equal keys have equal digests, which go to the same rank. That
 * rank finds them in a hash table.
 */
#include "unique_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/mix.h"
#include "matrices.h"

/**
 * Keys of the same length of up to 8 bytes have the same digest only if they are equal; others with a probability of
 * 2^-127. Both parts are spread evenly. `low` is odd.
 */
struct key_digest {
    uint64_t high;
    uint64_t low;
};

/** The longest name of a key, its zero byte included. */
#define KEY_NAME_BYTES 64

static const uint8_t *digest_bytes_of(const struct keys *keys, uint64_t index, size_t *bytes) {
    if (keys->ends.address == NULL) {
        *bytes = keys->values.bytes / keys->count;
        return keys->values.address + index * *bytes;
    }
    const uint64_t *ends = (const uint64_t *)keys->ends.address;
    const uint64_t begin = index == 0 ? 0 : ends[index - 1];
    *bytes = ends[index] - begin;
    return keys->values.address + begin;
}

/* One to one, as supply__mix(): the finalizer of MurmurHash3 (Appleby). */
static uint64_t murmur(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

static struct key_digest key_digest(const struct keys *keys, uint64_t index) {
    size_t bytes;
    const uint8_t *key = digest_bytes_of(keys, index, &bytes);
    /* The length counts, because zeros fill up the last word. It changes the parts differently. */
    struct key_digest digest = {bytes * GOLDEN_RATIO, bytes};
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, key + at, bytes - at < sizeof word ? bytes - at : sizeof word);
        digest.high = supply__mix(digest.high ^ word);
        digest.low = murmur(digest.low ^ word);
    }
    digest.low |= 1;
    return digest;
}

/* The key as a message shows it: 17, or 'a text'. */
static void key_name(const struct keys *keys, uint64_t index, char name[KEY_NAME_BYTES]) {
    size_t bytes;
    const uint8_t *key = digest_bytes_of(keys, index, &bytes);
    char text[KEY_NAME_BYTES - 16];
    int64_t value = 0;
    switch (keys->format[0]) {
        case 'c':
            value = (int64_t)*(const int8_t *)key;
            break;
        case 's':
            value = *(const int16_t *)(const void *)key;
            break;
        case 'i':
            value = *(const int32_t *)(const void *)key;
            break;
        case 'l':
            value = *(const int64_t *)(const void *)key;
            break;
        case 'u':
            supply__copy_line(text, sizeof text, (const char *)key, bytes);
            snprintf(name, KEY_NAME_BYTES, "'%s'", text);
            return;
        default:
            /* Dates, instants, decimals, bytes: the row tells which one it is. */
            snprintf(name, KEY_NAME_BYTES, "of row %" PRIu64 " of this rank", index);
            return;
    }
    snprintf(name, KEY_NAME_BYTES, "%" PRId64, value);
}

/* Each portion reads all keys, so their number must not grow with that of the keys. */
#define PORTIONS_MAX 16
/* Of digests for one rank in one portion: no even distribution has as many. */
#define LARGEST_SHARE(mean) (2 * (mean) + 64)

struct search {
    const struct keys *keys;
    const struct ranks *ranks;
    uint64_t portions;
    uint64_t share; /**< of one rank in one portion, at most */
    struct growing memory;
    struct key_digest *sent;     /**< `share` for each rank */
    struct key_digest *received; /**< as many */
    struct key_digest *table;    /**< with at least as many free places as used ones */
    int *counts;                 /**< sent to each rank; received from each; and where both begin */
    MPI_Datatype digest;
};

/* An even part, from 0 to parts − 1, of all 64-bit numbers. */
static uint64_t digest_part_of(uint64_t number, uint64_t parts) {
    return (uint64_t)((unsigned __int128)number * parts >> 64);
}

static uint64_t power_of_two(uint64_t least) {
    uint64_t power = 1;
    while (power < least) power *= 2;
    return power;
}

static bool search_allocate(struct search *search, uint64_t portion, char *text) {
    const uint64_t ranks = (uint64_t)search->ranks->count;
    uint64_t most = search->keys->count;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, search->ranks->comm);
    search->portions = most / portion + 1 < PORTIONS_MAX ? most / portion + 1 : PORTIONS_MAX;
    search->share = LARGEST_SHARE(most / search->portions / ranks);
    const uint64_t all = search->share * ranks;
    const size_t bytes = (2 * all + power_of_two(2 * all)) * sizeof(struct key_digest) + 4 * ranks * sizeof(int);
    search->sent = growing_add(&search->memory, bytes);
    if (search->sent == NULL)
        snprintf(text, SUPPLY_TEXT_BYTES,
                 "the check of the keys for duplicates needs %.1f GB on node %s: drop other matrices, or send the "
                 "matrix without a key",
                 (double)bytes / 1e9, search->ranks->node);
    if (!ranks_agree(search->ranks, text) || search->sent == NULL) return false;
    search->received = search->sent + all;
    search->table = search->received + all;
    search->counts = (int *)(search->table + power_of_two(2 * all));
    for (uint64_t rank = 0; rank < ranks; rank++) search->counts[2 * ranks + rank] = (int)(search->share * rank);
    MPI_Type_contiguous(2, MPI_UINT64_T, &search->digest);
    MPI_Type_commit(&search->digest);
    return true;
}

/* If a rank's share is full, further digests are dropped: only equal digests can fill it, and it has some of them. */
static void search_collect(const struct search *search, uint64_t portion) {
    const uint64_t ranks = (uint64_t)search->ranks->count;
    memset(search->counts, 0, ranks * sizeof *search->counts);
    for (uint64_t i = 0; i < search->keys->count; i++) {
        const struct key_digest digest = key_digest(search->keys, i);
        if (digest_part_of(digest.low, search->portions) != portion) continue;
        const uint64_t to = digest_part_of(digest.high, ranks);
        int *count = &search->counts[to];
        if ((uint64_t)*count < search->share) search->sent[to * search->share + (uint64_t)(*count)++] = digest;
    }
}

/* All digests of this portion that are this rank's: their number. They come one after another. */
static uint64_t redistribute(const struct search *search) {
    const int ranks = search->ranks->count;
    int *sent = search->counts, *received = &sent[ranks], *begins = &received[ranks], *ends = &begins[ranks];
    MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, search->ranks->comm);
    int count = 0;
    for (int rank = 0; rank < ranks; count += received[rank++]) ends[rank] = count;
    MPI_Alltoallv(search->sent, sent, begins, search->digest, search->received, received, ends, search->digest,
                  search->ranks->comm);
    return (uint64_t)count;
}

/* The first digest that is there twice; NULL: none. An empty place has an even `low`. */
static const struct key_digest *find_duplicate(const struct search *search, uint64_t count) {
    const uint64_t mask = power_of_two(2 * count) - 1;
    memset(search->table, 0, (mask + 1) * sizeof *search->table);
    for (uint64_t i = 0; i < count; i++) {
        const struct key_digest *digest = &search->received[i];
        uint64_t place = digest->high & mask;
        for (; search->table[place].low != 0; place = (place + 1) & mask)
            if (memcmp(&search->table[place], digest, sizeof *digest) == 0) return digest;
        search->table[place] = *digest;
    }
    return NULL;
}

/* The lowest rank that has such a key says which one it is. */
static void name_duplicate(const struct search *search, struct key_digest digest, char *text) {
    const struct ranks *ranks = search->ranks;
    char name[KEY_NAME_BYTES] = "";
    int first = ranks->count;
    for (uint64_t i = 0; i < search->keys->count && first == ranks->count; i++) {
        const struct key_digest own = key_digest(search->keys, i);
        if (memcmp(&own, &digest, sizeof own) != 0) continue;
        key_name(search->keys, i, name);
        first = ranks->rank;
    }
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, ranks->comm);
    MPI_Bcast(name, sizeof name, MPI_CHAR, first, ranks->comm);
    snprintf(text, SUPPLY_TEXT_BYTES,
             "the key %s (rank %d) is in more than one row, and a key must name one row: drop duplicates, choose "
             "another column, or send the matrix without a key",
             name, first);
}

/* False: text names a key. */
static bool check_portion(const struct search *search, uint64_t portion, char *text) {
    const struct ranks *ranks = search->ranks;
    search_collect(search, portion);
    const struct key_digest *duplicate = find_duplicate(search, redistribute(search));
    struct key_digest digest = duplicate == NULL ? (struct key_digest){0} : *duplicate;
    int finder = duplicate == NULL ? ranks->count : ranks->rank;
    MPI_Allreduce(MPI_IN_PLACE, &finder, 1, MPI_INT, MPI_MIN, ranks->comm);
    if (finder == ranks->count) return true;
    MPI_Bcast(&digest, 1, search->digest, finder, ranks->comm);
    name_duplicate(search, digest, text);
    return false;
}

bool keys_are_unique(const struct keys *keys, const struct ranks *ranks, uint64_t portion, struct progress *progress,
                     char *text) {
    struct search search = {.keys = keys, .ranks = ranks, .digest = MPI_DATATYPE_NULL};
    text[0] = '\0';
    if (keys->format[0] == '\0') return true;
    bool are_unique = search_allocate(&search, portion, text);
    for (uint64_t i = 0; i < search.portions && are_unique; i++) {
        progress_set(progress, i, search.portions);
        are_unique = check_portion(&search, i, text);
    }
    if (search.digest != MPI_DATATYPE_NULL) MPI_Type_free(&search.digest);
    growing_free(&search.memory);
    return are_unique;
}

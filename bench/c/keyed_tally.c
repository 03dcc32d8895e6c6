#include "keyed_tally.h"

#include <inttypes.h>

#include "checksum.h"
#include "messages.h"
#include "pair_options.h"

/* Keys come at random. */
enum { AHEAD = 16 };

static void add_key(struct keyed_tally *tally, int64_t key, bool sorted) {
    const bool differs = tally->elements == 0 || key != tally->last;
    if (tally->elements == 0)
        tally->first = key;
    else if (key < tally->last)
        tally->descents++;
    tally->last = key;
    tally->elements++;
    tally->key_sum += (uint64_t)key;
    if (!sorted)
        key_set_add(&tally->keys, key);
    else if (differs)
        tally->groups++;
}

void keyed_tally_block(struct keyed_tally *tally, supply_t *supply, const supply_block_t *block, bool sorted) {
    const supply_column_t key = column_named(supply, block, "key"), value = column_named(supply, block, "value");
    const int64_t *keys = key.data;
    for (uint32_t i = 0; i < block->element_count; i++) {
        const void *address;
        size_t bytes;
        if (supply_value(&value, i, &address, &bytes) != SUPPLY_OK) die("value %u cannot be read", i);
        if (!sorted && i + AHEAD < block->element_count) key_set_prefetch(&tally->keys, keys[i + AHEAD]);
        add_key(tally, keys[i], sorted);
        tally->bound += (2 * (uint64_t)keys[i] + 1) * sum_of_words(address, bytes);
    }
    if (!sorted) tally->groups = tally->keys.count;
}

void keyed_tally_print(const struct keyed_tally *tally, FILE *to) {
    fprintf(to,
            "\"elements\": %" PRIu64 ", \"groups\": %" PRIu64 ", \"key_sum\": %" PRIu64 ", \"bound\": %" PRIu64
            ", \"first_key\": %" PRId64 ", \"last_key\": %" PRId64 ", \"descents\": %" PRIu64,
            tally->elements, tally->groups, tally->key_sum, tally->bound, tally->first, tally->last, tally->descents);
}

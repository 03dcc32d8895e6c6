#include "key_set.h"

#include <stdlib.h>

#include "messages.h"

enum { FIRST_CAPACITY = 1 << 16 };

/* The product's high bits depend on all bits of the key. */
static size_t start_of(const struct key_set *set, int64_t key) {
    return (size_t)(((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (set->capacity - 1);
}

static void insert(struct key_set *set, int64_t key) {
    size_t place = start_of(set, key);
    while (set->taken[place]) {
        if (set->keys[place] == key) return;
        place = (place + 1) & (set->capacity - 1);
    }
    set->keys[place] = key;
    set->taken[place] = 1;
    set->count++;
}

static void grow(struct key_set *set) {
    const size_t capacity = set->capacity == 0 ? FIRST_CAPACITY : 2 * set->capacity;
    struct key_set larger = {.keys = malloc(capacity * sizeof *larger.keys), .taken = calloc(capacity, 1)};
    if (larger.keys == NULL || larger.taken == NULL) die("no memory for %zu keys", capacity);
    larger.capacity = capacity;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->taken[i]) insert(&larger, set->keys[i]);
    key_set_free(set);
    *set = larger;
}

void key_set_prefetch(const struct key_set *set, int64_t key) {
    if (set->capacity == 0) return;
    const size_t place = start_of(set, key);
    __builtin_prefetch(&set->taken[place]);
    __builtin_prefetch(&set->keys[place], 1);
}

void key_set_add(struct key_set *set, int64_t key) {
    if (2 * set->count >= set->capacity) grow(set);
    insert(set, key);
}

void key_set_free(struct key_set *set) {
    free(set->keys);
    free(set->taken);
    *set = (struct key_set){0};
}

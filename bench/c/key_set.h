#ifndef KEY_SET_H
#define KEY_SET_H

#include <stddef.h>
#include <stdint.h>

/** Keys that were seen. Starts as {0}. */
struct key_set {
    int64_t *keys;
    uint8_t *taken;
    size_t count, capacity; /* capacity: a power of two, or 0 */
};

/** Adds a key, or ends the program if there is no memory. */
/** Fetches the memory for a key that is added soon. */
void key_set_prefetch(const struct key_set *set, int64_t key);

void key_set_add(struct key_set *set, int64_t key);

void key_set_free(struct key_set *set);

#endif

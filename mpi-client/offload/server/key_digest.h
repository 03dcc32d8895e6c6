/** A short value for each key, for which keys can be compared across ranks. */
#ifndef KEY_DIGEST_H
#define KEY_DIGEST_H

#include "matrices.h"

/**
 * Keys of the same length of up to 8 bytes have the same digest only if they are equal; others with a probability of
 * 2^-127. Both parts are spread evenly. `low` is odd.
 */
struct key_digest {
    uint64_t high;
    uint64_t low;
};

struct key_digest key_digest(const struct keys *keys, uint64_t index);

/** The longest name of a key, its zero byte included. */
#define KEY_NAME_BYTES 64

/** The key as a message shows it: 17, or 'a text'. */
void key_name(const struct keys *keys, uint64_t index, char name[KEY_NAME_BYTES]);

#endif

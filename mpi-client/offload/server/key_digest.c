#include "key_digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"

static const uint8_t *bytes_of(const struct keys *keys, uint64_t index, size_t *bytes) {
    if (keys->ends.address == NULL) {
        *bytes = keys->values.bytes / keys->count;
        return keys->values.address + index * *bytes;
    }
    const uint64_t *ends = (const uint64_t *)keys->ends.address;
    const uint64_t begin = index == 0 ? 0 : ends[index - 1];
    *bytes = ends[index] - begin;
    return keys->values.address + begin;
}

/* One to one: the finalizers of SplitMix64 (Steele, Lea and Flood, 2014) and of MurmurHash3 (Appleby). */
static uint64_t splitmix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static uint64_t murmur(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

struct key_digest key_digest(const struct keys *keys, uint64_t index) {
    size_t bytes;
    const uint8_t *key = bytes_of(keys, index, &bytes);
    /* The length counts, because zeros fill up the last word. It changes the parts differently. */
    struct key_digest digest = {bytes * UINT64_C(0x9E3779B97F4A7C15), bytes};
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, key + at, bytes - at < sizeof word ? bytes - at : sizeof word);
        digest.high = splitmix(digest.high ^ word);
        digest.low = murmur(digest.low ^ word);
    }
    digest.low |= 1;
    return digest;
}

void key_name(const struct keys *keys, uint64_t index, char name[KEY_NAME_BYTES]) {
    size_t bytes;
    const uint8_t *key = bytes_of(keys, index, &bytes);
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
            supply_copy_line(text, sizeof text, (const char *)key, bytes);
            snprintf(name, KEY_NAME_BYTES, "'%s'", text);
            return;
        default:
            /* Dates, instants, decimals, bytes: the row tells which one it is. */
            snprintf(name, KEY_NAME_BYTES, "of row %" PRIu64 " of this rank", index);
            return;
    }
    snprintf(name, KEY_NAME_BYTES, "%" PRId64, value);
}

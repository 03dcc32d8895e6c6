/** Random numbers and hashes that are the same on every rank and in every run. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GOLDEN_RATIO UINT64_C(0x9E3779B97F4A7C15)

/** The output function of SplitMix64 (Steele, Lea and Flood, 2014), one to one: each bit of the result depends on every
 * bit. */
static inline uint64_t supply__mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return bits ^ bits >> 31;
}

/** The next number of the generator SplitMix64. */
static inline uint64_t supply__random(uint64_t *state) { return supply__mix(*state += GOLDEN_RATIO); }

/**
 * A number below `bound`, which is not 0, each as probable as the others: the upper half of a product, by Lemire's
 * method. The few products that would favour a number are drawn again.
 */
static inline uint32_t supply__random_below(uint64_t *state, uint32_t bound) {
    uint64_t product = (uint64_t)(uint32_t)supply__random(state) * bound;
    if ((uint32_t)product < bound) {
        const uint32_t least = -bound % bound;
        while ((uint32_t)product < least) product = (uint64_t)(uint32_t)supply__random(state) * bound;
    }
    return (uint32_t)(product >> 32);
}

/** Hash of bytes, eight at a time. */
static inline uint64_t supply__hash(const void *data, size_t bytes, uint64_t seed) {
    const uint8_t *at = (const uint8_t *)data;
    uint64_t hash = supply__mix(seed + bytes + GOLDEN_RATIO), word;
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = supply__mix(hash ^ word) + GOLDEN_RATIO;
    }
    word = 0;
    if (bytes > 0) memcpy(&word, at, bytes);
    return supply__mix(hash ^ word);
}

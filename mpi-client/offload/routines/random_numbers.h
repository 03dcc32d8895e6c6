/**
 * Random numbers by position, so that ranks need not share a generator, and their number does not matter: they depend
 * on seed, stream and index alone.
 */
#pragma once

#include <stdint.h>

#define RANDOM_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t random_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** Number `index` of a stream, from 0 to 1, without 1: 53 bits of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline double random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    const uint64_t start = random_mix(seed + RANDOM_GOLDEN) ^ random_mix(stream + 2 * RANDOM_GOLDEN);
    return (double)(random_mix(start + (index + 1) * RANDOM_GOLDEN) >> 11) * 0x1p-53;
}

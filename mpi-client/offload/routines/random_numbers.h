/**
 * Random numbers by position, so that ranks need not share a generator, and their number does not matter: they depend
 * on seed, stream and index alone.
 */
#pragma once

#include "base/mix.h"

/** Number `index` of a stream, from 0 to 1, without 1: 53 bits of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline double random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    const uint64_t start = supply__mix(seed + GOLDEN_RATIO) ^ supply__mix(stream + 2 * GOLDEN_RATIO);
    return (double)(supply__mix(start + (index + 1) * GOLDEN_RATIO) >> 11) * 0x1p-53;
}

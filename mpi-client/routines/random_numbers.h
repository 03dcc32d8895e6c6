/** Random numbers by position, so that ranks need not share a generator, and their number does not matter. */
#ifndef RANDOM_NUMBERS_H
#define RANDOM_NUMBERS_H

#include <stdint.h>

/** Number `index` of a stream, from 0 to 1, without 1: 53 bits of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
double random_uniform(uint64_t seed, uint64_t stream, uint64_t index);

/** Number `index` of a normal distribution with mean 0 and variance 1 (Box and Muller, 1958). */
double random_normal(uint64_t seed, uint64_t stream, uint64_t index);

#endif

/** Random numbers by position: they depend on nothing but seed, stream and index. */
#include "random_numbers.h"

#include <math.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define TWO_PI 6.283185307179586476925286766559

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    const uint64_t start = mix(seed + GOLDEN) ^ mix(stream + 2 * GOLDEN);
    return (double)(mix(start + (index + 1) * GOLDEN) >> 11) * 0x1p-53;
}

double random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    /* 1 − u is not 0. */
    const double radius = sqrt(-2 * log(1 - random_uniform(seed, stream, 2 * index)));
    return radius * cos(TWO_PI * random_uniform(seed, stream, 2 * index + 1));
}

/** Copies numbers of any type as doubles, and finds the first one that is not finite. */
#include "doubles.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Copied and then checked while they are in the nearest cache. */
#define NUMBERS_AT_ONCE ((size_t)2048)

size_t doubles_number_bytes(char format) {
    switch (format) {
        case 'g':
        case 'l':
            return 8;
        case 'f':
        case 'i':
            return 4;
        case 's':
            return 2;
        case 'c':
            return 1;
        default:
            return 0;
    }
}

static void convert(double *to, const void *from, char format, size_t count) {
#define CONVERT(type)                                                                                                  \
    for (size_t i = 0; i < count; i++) to[i] = (double)((const type *)from)[i];                                        \
    return
    switch (format) {
        case 'f':
            CONVERT(float);
        case 'l':
            CONVERT(int64_t);
        case 'i':
            CONVERT(int32_t);
        case 's':
            CONVERT(int16_t);
        case 'c':
            CONVERT(int8_t);
        default:
            memcpy(to, from, count * sizeof *to);
    }
#undef CONVERT
}

/* Without a branch for each number: one more in the exponent of NaN and of infinity reaches the sign. */
static bool all_are_finite(const double *values, size_t count) {
    uint64_t reached = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        reached |= (bits & INT64_MAX) + ((uint64_t)1 << 52);
    }
    return reached >> 63 == 0;
}

size_t doubles_copy(double *to, const void *from, char format, size_t count) {
    const size_t bytes = doubles_number_bytes(format);
    for (size_t done = 0; done < count; done += NUMBERS_AT_ONCE) {
        const size_t some = count - done < NUMBERS_AT_ONCE ? count - done : NUMBERS_AT_ONCE;
        convert(to + done, (const char *)from + done * bytes, format, some);
        if (all_are_finite(to + done, some)) continue;
        size_t place = done;
        while (isfinite(to[place])) place++;
        return place;
    }
    return count;
}

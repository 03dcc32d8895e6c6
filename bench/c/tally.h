/** Counts of received elements, for comparison with the source. */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdint.h>

/** The sums do not depend on the order of the elements. */
struct tally {
    uint64_t elements;
    uint64_t bytes;   /* of the elements' data */
    uint64_t crc_sum; /* of the CRC-32 of each element's data, modulo 2^64 */
};

void tally_element(struct tally *tally, const void *data, size_t bytes);

/** Prints the tally as a JSON object, without a line end. */
void tally_print(const struct tally *tally);

#endif

/** What a rank has received, to be compared with the source. */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdint.h>

/** Sums do not depend on the order of elements, so that any order of partitions comes to the same. */
struct tally {
    uint64_t elements;
    uint64_t bytes;   /* of the elements' data */
    uint64_t crc_sum; /* of the CRC-32 of each element's data, modulo 2^64 */
};

void tally_element(struct tally *tally, const void *data, size_t bytes);

/** Prints it as a JSON object, without a line end. */
void tally_print(const struct tally *tally);

#endif

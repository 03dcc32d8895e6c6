/** Reading every byte, in the ways that the benchmarks compare. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/** The sum of the 64-bit words at any address, the last one filled up with zeros: reads every byte once. */
uint64_t sum_of_words(const void *data, size_t bytes);

/** CRC-32 as in zlib, and as java.util.zip.CRC32 in the Spark side's count of its source. */
uint32_t crc_of(const void *data, size_t bytes);

#endif

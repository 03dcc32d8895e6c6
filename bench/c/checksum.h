/** The ways in which the benchmarks read every byte. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/** The sum of the 64-bit words, the last one padded with zeros. data may have any alignment. Reads every byte once. */
uint64_t sum_of_words(const void *data, size_t bytes);

/** CRC-32 as in zlib and java.util.zip.CRC32, with which the Spark side counts its source. */
uint32_t crc_of(const void *data, size_t bytes);

#endif

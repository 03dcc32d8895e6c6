#include "checksum.h"

#include <string.h>
#include <zlib.h>

uint64_t sum_of_words(const void *data, size_t bytes) {
    const uint64_t *words = data;
    const size_t whole = bytes / sizeof *words;
    uint64_t sum = 0;
    for (size_t i = 0; i < whole; i++) sum += words[i];
    uint64_t rest = 0;
    memcpy(&rest, words + whole, bytes % sizeof *words);
    return sum + rest;
}

uint32_t crc_of(const void *data, size_t bytes) { return (uint32_t)crc32_z(0, data, bytes); }

#include "checksum.h"

#include <string.h>
#include <zlib.h>

uint64_t sum_of_words(const void *data, size_t bytes) {
    const char *at = data;
    const size_t whole = bytes / sizeof(uint64_t);
    uint64_t sum = 0, word;
    for (size_t i = 0; i < whole; i++) {
        memcpy(&word, at + i * sizeof word, sizeof word);
        sum += word;
    }
    word = 0;
    memcpy(&word, at + whole * sizeof word, bytes % sizeof word);
    return sum + word;
}

uint32_t crc_of(const void *data, size_t bytes) { return (uint32_t)crc32_z(0, data, bytes); }

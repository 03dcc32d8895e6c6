#include "column_buffer.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN ((size_t)4096)

uint8_t *supply_buffer_reserve(struct column_buffer *buffer, size_t count) {
    if (count > buffer->capacity - buffer->size || buffer->bytes == NULL) {
        size_t capacity = 2 * buffer->capacity;
        if (capacity < buffer->size + count) capacity = buffer->size + count;
        if (capacity < CAPACITY_MIN) capacity = CAPACITY_MIN;
        uint8_t *grown = realloc(buffer->bytes, capacity);
        if (grown == NULL) return NULL;
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    uint8_t *space = buffer->bytes + buffer->size;
    buffer->size += count;
    return space;
}

/* At most eight bits from `first` on, in the low bits of the result. Reads no byte that has none of them. */
static uint8_t few_bits(const uint8_t *bits, uint64_t first, unsigned count) {
    const unsigned shift = first % 8;
    unsigned value = bits[first / 8] >> shift;
    if (shift + count > 8) value |= (unsigned)bits[first / 8 + 1] << (8 - shift);
    return (uint8_t)(value & (0xFFu >> (8 - count)));
}

bool supply_buffer_append_bits(struct column_buffer *buffer, uint64_t size, const uint8_t *bits, uint64_t first,
                               uint64_t count) {
    if (supply_buffer_reserve(buffer, supply_bitmap_bytes(size + count) - buffer->size) == NULL) return false;
    if (size % 8 == 0 && (bits == NULL || first % 8 == 0)) {
        const size_t whole = (size_t)(count / 8);
        if (bits == NULL)
            memset(&buffer->bytes[size / 8], 0xFF, whole);
        else if (whole > 0)
            memcpy(&buffer->bytes[size / 8], &bits[first / 8], whole);
        size += 8 * whole;
        first += 8 * whole;
        count -= 8 * whole;
    }
    while (count > 0) {
        const unsigned shift = size % 8, space = 8 - shift, step = count < space ? (unsigned)count : space;
        const uint8_t value = bits == NULL ? (uint8_t)(0xFFu >> (8 - step)) : few_bits(bits, first, step);
        uint8_t *byte = &buffer->bytes[size / 8];
        *byte = (uint8_t)((shift == 0 ? 0 : *byte) | value << shift);
        size += step;
        first += step;
        count -= step;
    }
    return true;
}

uint64_t supply_bits_count_zeros(const uint8_t *bits, uint64_t first, uint64_t count) {
    uint64_t ones = 0, done = 0;
    for (uint64_t word; first % 8 == 0 && count - done >= 64; done += 64) {
        memcpy(&word, &bits[(first + done) / 8], sizeof word);
        ones += (unsigned)__builtin_popcountll(word);
    }
    for (; done < count; done += 8)
        ones +=
            (unsigned)__builtin_popcount(few_bits(bits, first + done, count - done < 8 ? (unsigned)(count - done) : 8));
    return count - ones;
}

void supply_buffer_free(struct column_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct column_buffer){0};
}

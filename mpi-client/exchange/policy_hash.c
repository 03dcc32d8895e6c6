/**
 * The policy HASH: equal keys go to the same rank, on every node and in every run. NaNs are equal, and so are both
 * zeros. Lengths are those that the window has measured, because the task may change the values meanwhile.
 */
#include "policy.h"

#include <string.h>

#include "base/mix.h"

/* Of all elements whose key is null. */
#define HASH_OF_NULL 0

/* Floating-point numbers: their bytes, and the bits of their magnitude, of infinity, and of one of the NaNs. */
struct float_format {
    uint32_t bytes;
    uint64_t magnitude;
    uint64_t infinity;
    uint64_t nan;
};

/* What determines the hash of a value. */
struct hashed {
    const struct format *format;
    const struct float_format *floats; /* NULL: the column has none */
};

static const struct float_format *hash_float_format(const struct schema_entry *entry, const struct format *format) {
    static const struct float_format halves = {2, 0x7fff, 0x7c00, 0x7e00},
                                     singles = {4, 0x7fffffff, 0x7f800000, 0x7fc00000},
                                     doubles = {8, 0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000};
    const char *name = format->list_size > 0 ? entry->child_format : entry->format;
    if (strcmp(name, "e") == 0) return &halves;
    if (strcmp(name, "f") == 0) return &singles;
    return strcmp(name, "g") == 0 ? &doubles : NULL;
}

/*
 * Numbers that Spark takes as equal have equal bits: -0 those of 0, and each NaN those of one. Without arithmetic,
 * which depends on a thread's modes.
 */
static uint64_t hash_bits_of(const uint8_t *value, const struct float_format *floats) {
    uint64_t bits = 0;
    /* With a constant size each copy is a move. */
    if (floats->bytes == sizeof(uint16_t))
        memcpy(&bits, value, sizeof(uint16_t));
    else if (floats->bytes == sizeof(float))
        memcpy(&bits, value, sizeof(float));
    else
        memcpy(&bits, value, sizeof bits);
    const uint64_t magnitude = bits & floats->magnitude;
    if (magnitude == 0) return 0;
    return magnitude > floats->infinity ? floats->nan : bits;
}

static uint64_t hash_of_floats(const uint8_t *value, const struct hashed *hashed) {
    uint64_t hash = 0;
    for (uint32_t at = 0; at < hashed->format->bytes; at += hashed->floats->bytes) {
        const uint64_t bits = hash_bits_of(value + at, hashed->floats);
        hash = supply__hash(&bits, sizeof bits, hash);
    }
    return hash;
}

static uint64_t hash_of_fixed(const uint8_t *value, const struct hashed *hashed) {
    return hashed->floats != NULL ? hash_of_floats(value, hashed) : supply__hash(value, hashed->format->bytes, 0);
}

static uint64_t hash_of(const supply_column_t *column, const struct hashed *hashed, uint32_t row) {
    if (exchange_is_null(column, row)) return HASH_OF_NULL;
    const uint8_t *data = column->data;
    const struct format *format = hashed->format;
    if (format->layout == FORMAT_FIXED) return hash_of_fixed(data + (size_t)row * format->bytes, hashed);
    if (format->layout == FORMAT_BITS) {
        const uint8_t bit = data[row / 8] >> row % 8 & 1;
        return supply__hash(&bit, sizeof bit, 0);
    }
    const uint32_t bytes = exchange_value_bytes(column, row);
    const uint8_t *value = exchange_value(column, row, bytes);
    return value != NULL ? supply__hash(value, bytes, 0) : HASH_OF_NULL;
}

supply_status_t exchange_prepare_hash(struct destinations *destinations, const struct exchange_settings *settings,
                                      const struct columns *columns, const struct draw *draw, struct failure *failure) {
    uint32_t column = 0;
    TRY(exchange_find_key(settings, columns, "hash", &column, failure));
    const struct format *format = &columns->plans[column].format;
    const struct hashed hashed = {.format = format,
                                  .floats = hash_float_format(&columns->schema.entries[column], format)};
    for (uint32_t i = 0; i < draw->window->piece_count; i++) {
        const struct piece *piece = &draw->window->pieces[i];
        for (uint32_t k = 0; k < piece->count; k++) {
            const uint64_t hash = hash_of(&piece->held->columns[column], &hashed, piece->row + k);
            destinations->scratch[piece->start + k] = (uint32_t)((hash >> 32) * draw->ranks >> 32);
        }
    }
    return SUPPLY_OK;
}

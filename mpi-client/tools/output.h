/** The lines that supply-cat prints, also for a program of the tests. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "supply_datum.h"

struct totals {
    uint64_t epochs;
    uint64_t elements;
    uint64_t bytes; /**< of the elements' data */
};

/* A key may hold any byte. Escape those that a line of text must not hold. */
static inline void put_key(FILE *stream, const uint8_t *key, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (key[i] < 0x20 || key[i] > 0x7E || key[i] == '\\')
            fprintf(stream, "\\x%02x", key[i]);
        else
            putc(key[i], stream);
    }
}

/**
 * Prints one element, tab-separated: epoch, key, label, channels, height, width, encoded, bytes and CRC-32 of data.
 * False: the stream has failed.
 */
static inline bool output_element(FILE *stream, const supply_datum_t *datum) {
    fprintf(stream, "%" PRIu32 "\t", datum->epoch);
    put_key(stream, datum->key, datum->key_bytes);
    fprintf(stream, "\t%" PRId32 "\t%" PRId32 "\t%" PRId32 "\t%" PRId32 "\t%d\t%zu\t%08lx\n", datum->label,
            datum->channels, datum->height, datum->width, datum->encoded, datum->data_bytes,
            crc32_z(0, datum->data, datum->data_bytes));
    return !ferror(stream);
}

/** Prints a line for each total: its name, a tab, the number. False: the stream has failed. */
static inline bool output_totals(FILE *stream, const struct totals *totals) {
    fprintf(stream, "epochs\t%" PRIu64 "\nelements\t%" PRIu64 "\nbytes\t%" PRIu64 "\n", totals->epochs,
            totals->elements, totals->bytes);
    return !ferror(stream);
}

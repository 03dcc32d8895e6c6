/** The output of supply-cat. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "supply.h"

struct totals {
    uint64_t epochs;
    uint64_t elements;
    uint64_t bytes; /**< of the elements' data */
};

/**
 * Prints one element, tab-separated: epoch, key, label, channels, height, width, encoded, bytes and CRC-32 of data.
 * False: the stream has failed.
 */
bool output_element(FILE *stream, const supply_datum_t *datum);

/** Prints a line for each total: its name, a tab, the number. False: the stream has failed. */
bool output_totals(FILE *stream, const struct totals *totals);

#endif

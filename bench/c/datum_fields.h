/** The fields of a Caffe Datum, read in place from its wire format. */
#ifndef DATUM_FIELDS_H
#define DATUM_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct datum_fields {
    int32_t channels, height, width, label;
    bool encoded;
    const uint8_t *data;
    size_t data_bytes;
};

/** Finds the fields. False if the value is not a Datum. */
bool datum_fields_read(const void *value, size_t bytes, struct datum_fields *fields);

#endif

/**
 * Caffe's Datums, one by one: of an LMDB, or of a DataFrame with the columns of one.
 *
 *     supply_datum_t datum;
 *     supply_status_t status;
 *     while ((status = supply_next_datum(supply, &datum)) != SUPPLY_END_OF_DATA) {
 *         if (status == SUPPLY_OK) train(datum.data, datum.data_bytes, datum.label);
 *         else if (status < 0) die(supply_error(supply));
 *     }
 */
#ifndef SUPPLY_DATUM_H
#define SUPPLY_DATUM_H

#include "supply.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A Datum in the mapped file, or in its LMDB: seven values, nothing copied. */
typedef struct supply_datum_t {
    const void *key; /**< the LMDB key; not terminated */
    size_t key_bytes;
    int32_t label;
    int32_t channels;
    int32_t height;
    int32_t width;
    uint32_t epoch;   /**< epoch of the element, from 0 */
    bool encoded;     /**< data is an encoded image */
    const void *data; /**< channels × height × width as stored, or an encoded image, or float32 (see PROTOCOL.md) */
    size_t data_bytes;
} supply_datum_t;

/**
 * The next Datum, block after block: waits and releases by itself. The pointers are valid until the next call on this
 * handle. Returns what supply_next() returns (at SUPPLY_END_OF_EPOCH datum->epoch says which), and _CONTRACT if the
 * elements are no Datums: they have the columns key, label, channels, height, width, encoded and data, and may have
 * others. Do not call supply_next() in the same epoch.
 */
SUPPLY_API supply_status_t supply_next_datum(supply_t *supply, supply_datum_t *datum);

/** Datum `index` of a held block, from 0. SUPPLY_OK, or _ARGUMENT, _CONTRACT. */
SUPPLY_API supply_status_t supply_datum(supply_t *supply, const supply_block_t *block, uint32_t index,
                                        supply_datum_t *datum);

#ifdef __cplusplus
}
#endif

#endif

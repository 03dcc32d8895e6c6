#include "tally.h"

#include <inttypes.h>
#include <stdio.h>

#include "checksum.h"

void tally_element(struct tally *tally, const void *data, size_t bytes) {
    tally->elements += 1;
    tally->bytes += bytes;
    tally->crc_sum += crc_of(data, bytes);
}

void tally_print(const struct tally *tally) {
    printf("{\"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"crc_sum\": %" PRIu64 "}", tally->elements,
           tally->bytes, tally->crc_sum);
}

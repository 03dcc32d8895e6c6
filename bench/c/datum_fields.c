#include "datum_fields.h"

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 };

/* As in proto/datum.proto. */
enum field { CHANNELS = 1, HEIGHT = 2, WIDTH = 3, DATA = 4, LABEL = 5, ENCODED = 7 };

struct reader {
    const uint8_t *at, *end;
    bool broken;
};

static uint64_t varint(struct reader *reader) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        const uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return result;
    }
    reader->broken = true;
    return 0;
}

static void skip(struct reader *reader, uint64_t bytes) {
    if (bytes > (uint64_t)(reader->end - reader->at))
        reader->broken = true;
    else
        reader->at += bytes;
}

static void set_field(struct datum_fields *fields, uint64_t field, int32_t number) {
    switch (field) {
        case CHANNELS:
            fields->channels = number;
            break;
        case HEIGHT:
            fields->height = number;
            break;
        case WIDTH:
            fields->width = number;
            break;
        case LABEL:
            fields->label = number;
            break;
        case ENCODED:
            fields->encoded = number != 0;
            break;
    }
}

bool datum_fields_read(const void *value, size_t bytes, struct datum_fields *fields) {
    struct reader reader = {.at = value, .end = (const uint8_t *)value + bytes};
    *fields = (struct datum_fields){0};
    while (!reader.broken && reader.at < reader.end) {
        const uint64_t tag = varint(&reader), field = tag >> 3;
        switch (tag & 7) {
            case VARINT:
                set_field(fields, field, (int32_t)varint(&reader));
                break;
            case FIXED64:
                skip(&reader, 8);
                break;
            case FIXED32:
                skip(&reader, 4);
                break;
            case LENGTH_DELIMITED: {
                const uint64_t length = varint(&reader);
                if (field == DATA) {
                    fields->data = reader.at;
                    fields->data_bytes = length;
                }
                skip(&reader, length);
                break;
            }
            default:
                reader.broken = true;
        }
    }
    return !reader.broken;
}

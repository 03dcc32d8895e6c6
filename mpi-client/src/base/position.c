/**
 * A position as opaque bytes, as text, and in the header of the mapped file. Bytes and texts come from users: what is
 * no position is refused. It changes only what the caller passes: no lock.
 */
#include "base/position.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The opaque bytes. */
struct packed {
    uint32_t magic;
    uint32_t epoch;
    uint32_t inside;
    uint32_t partition;
    uint64_t element;
    uint64_t plan;
    uint64_t window_elements;
    uint64_t settings; /* 0: not the position of an exchange */
    uint32_t window;
    uint32_t unused; /* 0 */
};

_Static_assert(sizeof(struct packed) == sizeof(supply_position_t), "a position has no padding");

#define POSITION_MAGIC 0x31534f50u /* "POS1" */
#define TEXT_PREFIX "position-1"
#define TEXT_EXCHANGE ":exchange"
#define TEXT_WHOLE "whole"

void supply__position_pack(const struct position *position, supply_position_t *packed) {
    struct packed bytes = {.magic = POSITION_MAGIC,
                           .epoch = position->epoch,
                           .inside = position->inside,
                           .partition = position->partition,
                           .element = position->element,
                           .plan = position->plan};
    if (position->exchange.is_set) {
        bytes.window_elements = position->exchange.elements;
        bytes.settings = position->exchange.settings;
        bytes.window = position->exchange.window;
    }
    memcpy(packed, &bytes, sizeof bytes);
}

bool supply__position_unpack(const supply_position_t *packed, struct position *position) {
    struct packed bytes;
    memcpy(&bytes, packed, sizeof bytes);
    if (bytes.magic != POSITION_MAGIC || bytes.inside > 1) return false;
    if (bytes.settings == 0 && (bytes.window | bytes.window_elements) != 0) return false;
    if (bytes.unused != 0) return false;
    *position = (struct position){.epoch = bytes.epoch,
                                  .inside = bytes.inside,
                                  .partition = bytes.partition,
                                  .element = bytes.element,
                                  .plan = bytes.plan};
    if (bytes.settings != 0)
        position->exchange = (struct exchange_position){
            .is_set = true, .window = bytes.window, .elements = bytes.window_elements, .settings = bytes.settings};
    return true;
}

void supply__position_advance(struct position *position, const struct notification *block) {
    if (block->kind == NOTIFICATION_BLOCK) {
        position->epoch = block->epoch;
        position->inside = true;
        position->partition = block->partition;
        position->element = block->first_element + block->element_count;
    } else if (block->kind == NOTIFICATION_END_OF_EPOCH) {
        *position = (struct position){.epoch = block->epoch + 1, .plan = position->plan};
    }
}

void supply__position_request(const struct position *position, struct mapped_file_header *header) {
    header->start_epoch = position->epoch;
    header->start_inside = position->inside;
    header->start_partition = position->partition;
    header->start_element = position->element;
    header->start_plan = position->plan;
}

/* What snprintf() returns. */
static int write_text(const struct position *position, char *text, size_t bytes) {
    const int length =
        snprintf(text, bytes, TEXT_PREFIX ":%" PRIu32 ":%d:%" PRIu32 ":%" PRIu64 ":%016" PRIx64, position->epoch,
                 position->inside, position->partition, position->element, position->plan);
    if (!position->exchange.is_set || (size_t)length >= bytes) return length;
    const struct exchange_position *exchange = &position->exchange;
    char elements[24] = TEXT_WHOLE;
    if (exchange->elements != WHOLE_WINDOW) snprintf(elements, sizeof elements, "%" PRIu64, exchange->elements);
    return length + snprintf(text + length, bytes - (size_t)length, TEXT_EXCHANGE ":%" PRIu32 ":%s:%016" PRIx64,
                             exchange->window, elements, exchange->settings);
}

static bool skip(const char **text, const char *expected) {
    const size_t length = strlen(expected);
    if (strncmp(*text, expected, length) != 0) return false;
    *text += length;
    return true;
}

static bool read_number(const char **text, int base, uint64_t most, uint64_t *number) {
    char *end;
    errno = 0;
    *number = strtoull(*text, &end, base);
    const bool is_read = end != *text && errno == 0 && *number <= most;
    *text = end;
    return is_read;
}

static bool read_32(const char **text, uint32_t *number) {
    uint64_t read = 0;
    const bool is_read = skip(text, ":") && read_number(text, 10, UINT32_MAX, &read);
    *number = (uint32_t)read;
    return is_read;
}

/* The end of a text after that of the pair's position: nothing, or the position of an exchange. */
static bool read_exchange(const char **text, struct exchange_position *exchange) {
    if (!skip(text, TEXT_EXCHANGE)) return true;
    if (!read_32(text, &exchange->window) || !skip(text, ":")) return false;
    exchange->elements = WHOLE_WINDOW;
    if (!skip(text, TEXT_WHOLE) && !read_number(text, 10, WHOLE_WINDOW - 1, &exchange->elements)) return false;
    if (!skip(text, ":") || !read_number(text, 16, UINT64_MAX, &exchange->settings)) return false;
    exchange->is_set = exchange->settings != 0;
    return true;
}

supply_status_t supply_position_to_text(const supply_position_t *packed, char *text, size_t text_bytes) {
    if (packed == NULL || text == NULL || text_bytes == 0) return SUPPLY_ERROR_ARGUMENT;
    struct position position;
    const int length = supply__position_unpack(packed, &position) ? write_text(&position, text, text_bytes)
                                                                  : snprintf(text, text_bytes, "no-position");
    if ((size_t)length < text_bytes) return SUPPLY_OK;
    text[0] = '\0';
    return SUPPLY_ERROR_ARGUMENT;
}

supply_status_t supply_position_from_text(supply_position_t *packed, const char *text) {
    if (packed == NULL || text == NULL) return SUPPLY_ERROR_ARGUMENT;
    struct position position = {0};
    uint32_t inside;
    const char *rest = text;
    if (!skip(&rest, TEXT_PREFIX) || !read_32(&rest, &position.epoch) || !read_32(&rest, &inside) ||
        !read_32(&rest, &position.partition) || !skip(&rest, ":") ||
        !read_number(&rest, 10, UINT64_MAX, &position.element) || !skip(&rest, ":") ||
        !read_number(&rest, 16, UINT64_MAX, &position.plan) || !read_exchange(&rest, &position.exchange))
        return SUPPLY_ERROR_ARGUMENT;
    position.inside = inside == 1;
    /* More is read than supply_position_to_text() writes: blanks, signs, zeros, a longer text. */
    supply_position_t read;
    char written[SUPPLY_POSITION_TEXT_BYTES];
    supply__position_pack(&position, &read);
    supply_position_to_text(&read, written, sizeof written);
    if (strcmp(text, written) != 0) return SUPPLY_ERROR_ARGUMENT;
    *packed = read;
    return SUPPLY_OK;
}

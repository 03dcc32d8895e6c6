#include "pack.h"

#include <string.h>

/* Elements come in random order. While one is copied, memory of the one AHEAD of it is fetched. */
enum { AHEAD = 16, CACHE_LINE = 64 };

/* The beginning of value i, and the offset of a later one, whose beginning is asked for when that has arrived. */
static inline void prefetch(const struct pick *pick, uint32_t column, uint32_t i) {
    uint32_t row;
    if (i + AHEAD >= pick->count) return;
    const struct piece *piece = exchange_window_find(pick->window, pick->order[i + AHEAD], &row);
    const supply_column_t *of = &piece->held->columns[column];
    if (of->offsets == NULL) return;
    __builtin_prefetch(&of->offsets[row]);
    piece = exchange_window_find(pick->window, pick->order[i], &row);
    of = &piece->held->columns[column];
    if (of->offsets == NULL) return;
    const uint32_t begin = (uint32_t)SHARED_READ(of->offsets[row]);
    if ((uint64_t)begin + CACHE_LINE > of->data_bytes) return;
    __builtin_prefetch((const uint8_t *)of->data + begin);
    __builtin_prefetch((const uint8_t *)of->data + begin + CACHE_LINE - 1);
}

void exchange_pack_lengths(const struct pick *pick, uint32_t column, int32_t *to) {
    for (uint32_t i = 0, row; i < pick->count; i++) {
        const struct piece *piece = exchange_window_find(pick->window, pick->order[i], &row);
        to[i] = (int32_t)exchange_value_bytes(&piece->held->columns[column], row);
    }
}

bool exchange_pack_values(const struct pick *pick, uint32_t column, const int32_t *lengths, uint8_t *to) {
    bool is_whole = true;
    for (uint32_t i = 0, row; i < pick->count; i++) {
        const struct piece *piece = exchange_window_find(pick->window, pick->order[i], &row);
        prefetch(pick, column, i + AHEAD);
        const uint32_t bytes = (uint32_t)lengths[i];
        const uint8_t *value = exchange_value(&piece->held->columns[column], row, bytes);
        if (value != NULL && bytes > 0) memcpy(to, value, bytes);
        if (value == NULL) memset(to, 0, bytes);
        is_whole &= value != NULL;
        to += bytes;
    }
    return is_whole;
}

/* With a constant width each copy is a move or two. */
static inline void pack_fixed(const struct pick *pick, uint32_t column, size_t width, uint8_t *to) {
    for (uint32_t i = 0, row; i < pick->count; i++) {
        const struct piece *piece = exchange_window_find(pick->window, pick->order[i], &row);
        memcpy(to + i * width, (const uint8_t *)piece->held->columns[column].data + row * width, width);
    }
}

static void pack_bits(const struct pick *pick, uint32_t column, uint8_t *to) {
    for (uint32_t i = 0, row; i < pick->count; i++) {
        const struct piece *piece = exchange_window_find(pick->window, pick->order[i], &row);
        const uint8_t *bits = piece->held->columns[column].data;
        to[i] = bits[row / 8] >> row % 8 & 1;
    }
}

void exchange_pack_data(const struct pick *pick, uint32_t column, const struct format *format, uint8_t *to) {
    if (format->layout == FORMAT_BITS) {
        pack_bits(pick, column, to);
        return;
    }
    switch (format->bytes) {
        case 1:
            pack_fixed(pick, column, 1, to);
            break;
        case 2:
            pack_fixed(pick, column, 2, to);
            break;
        case 4:
            pack_fixed(pick, column, 4, to);
            break;
        case 8:
            pack_fixed(pick, column, 8, to);
            break;
        default:
            pack_fixed(pick, column, format->bytes, to);
    }
}

void exchange_pack_validity(const struct pick *pick, uint32_t column, uint8_t *to) {
    for (uint32_t i = 0, row; i < pick->count; i++) {
        const struct piece *piece = exchange_window_find(pick->window, pick->order[i], &row);
        to[i] = !exchange_is_null(&piece->held->columns[column], row);
    }
}

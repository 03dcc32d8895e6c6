/**
 * Keys with a prefix of 64 bits, and the order of a window's elements by them: sorted by the prefix, then by the rest.
 * Values are read as exchange_value() reads them: the task may change them at any time. It runs in the thread of the
 * sorter.
 */
#include "sort_key.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

#define SIGN_64 (UINT64_C(1) << 63)

/* Unsigned numbers with the order of signed ones. */
static uint64_t key_of_signed(int64_t value) { return (uint64_t)value ^ SIGN_64; }

/* The bits of a double have its order, except that those of negative numbers count down. */
static uint64_t key_of_double(double value) {
    if (isnan(value)) return UINT64_MAX;
    if (value == 0) value = 0;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & SIGN_64 ? ~bits : bits | SIGN_64;
}

/* PREFIX(NAME, TYPE, ORDER): the prefix of numbers of that type. */
#define PREFIX(name, type, order)                                                                                      \
    static uint64_t name(const supply_column_t *column, uint32_t index) {                                              \
        type value;                                                                                                    \
        memcpy(&value, (const type *)column->data + index, sizeof value);                                              \
        return order(value);                                                                                           \
    }

PREFIX(prefix_i8, int8_t, key_of_signed)
PREFIX(prefix_i16, int16_t, key_of_signed)
PREFIX(prefix_i32, int32_t, key_of_signed)
PREFIX(prefix_i64, int64_t, key_of_signed)
PREFIX(prefix_u8, uint8_t, (uint64_t))
PREFIX(prefix_u16, uint16_t, (uint64_t))
PREFIX(prefix_u32, uint32_t, (uint64_t))
PREFIX(prefix_u64, uint64_t, (uint64_t))
PREFIX(prefix_float, float, key_of_double)
PREFIX(prefix_double, double, key_of_double)

static uint64_t prefix_bit(const supply_column_t *column, uint32_t index) {
    return ((const uint8_t *)column->data)[index / 8] >> index % 8 & 1;
}

/* A decimal is a signed number of 128 bits, its low half first. */
static uint64_t prefix_decimal(const supply_column_t *column, uint32_t index) {
    int64_t high;
    memcpy(&high, (const uint8_t *)column->data + (size_t)index * 16 + 8, sizeof high);
    return key_of_signed(high);
}

static void key_rest_of_decimal(const supply_column_t *column, uint32_t index, struct sort_key *key) {
    const uint8_t *low = (const uint8_t *)column->data + (size_t)index * 16;
    for (int i = 0; i < 8; i++) key->scratch[i] = low[7 - i];
    key->rest = key->scratch;
    key->rest_bytes = sizeof key->scratch;
}

/* A value that changed since the block was checked counts as empty. */
static void key_bytes_of(const supply_column_t *column, uint32_t index, const void **data, size_t *bytes) {
    const uint32_t length = exchange_value_bytes(column, index);
    *data = exchange_value(column, index, length);
    *bytes = *data != NULL ? length : 0;
    if (*data == NULL) *data = "";
}

static uint64_t prefix_bytes(const supply_column_t *column, uint32_t index) {
    const void *data;
    size_t bytes;
    key_bytes_of(column, index, &data, &bytes);
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < bytes ? ((const uint8_t *)data)[i] : 0);
    return prefix;
}

static void key_rest_of_bytes(const supply_column_t *column, uint32_t index, struct sort_key *key) {
    key_bytes_of(column, index, &key->rest, &key->rest_bytes);
}

const struct key_order *exchange_key_order(const char *format) {
    static const struct {
        const char *format;
        struct key_order order;
    } orders[] = {
        {"b", {prefix_bit, NULL}},
        {"c", {prefix_i8, NULL}},
        {"C", {prefix_u8, NULL}},
        {"s", {prefix_i16, NULL}},
        {"S", {prefix_u16, NULL}},
        {"i", {prefix_i32, NULL}},
        {"I", {prefix_u32, NULL}},
        {"l", {prefix_i64, NULL}},
        {"L", {prefix_u64, NULL}},
        {"f", {prefix_float, NULL}},
        {"g", {prefix_double, NULL}},
        {"tdD", {prefix_i32, NULL}},
        {"z", {prefix_bytes, key_rest_of_bytes}},
        {"u", {prefix_bytes, key_rest_of_bytes}},
        {"vz", {prefix_bytes, key_rest_of_bytes}},
    };
    static const struct key_order timestamp = {prefix_i64, NULL}, decimal = {prefix_decimal, key_rest_of_decimal};
    if (strncmp(format, "tsu:", 4) == 0) return &timestamp;
    if (strncmp(format, "d:", 2) == 0) return &decimal;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(orders[i].format, format) == 0) return &orders[i].order;
    return NULL;
}

void exchange_key_read(const struct key_order *order, const supply_column_t *column, uint32_t index,
                       struct sort_key *key) {
    key->rest = "";
    key->rest_bytes = 0;
    key->prefix = UINT64_MAX;
    key->is_null = exchange_is_null(column, index);
    if (key->is_null) return;
    key->prefix = order->prefix(column, index);
    if (order->rest != NULL) order->rest(column, index, key);
}

int exchange_key_compare(const struct sort_key *a, const struct sort_key *b) {
    if (a->is_null != b->is_null) return a->is_null ? 1 : -1;
    if (a->prefix != b->prefix) return a->prefix < b->prefix ? -1 : 1;
    const size_t common = a->rest_bytes < b->rest_bytes ? a->rest_bytes : b->rest_bytes;
    const int order = memcmp(a->rest, b->rest, common);
    if (order != 0) return order;
    return a->rest_bytes == b->rest_bytes ? 0 : a->rest_bytes < b->rest_bytes ? -1 : 1;
}

/* A key's prefix, and the index of its element. */
struct sort_entry {
    uint64_t prefix;
    uint64_t element;
};

/* A radix sort: a pass for each digit of 11 bits in which prefixes differ, so that equal ones keep their order. */
enum { DIGIT_BITS = 11, DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS, DIGIT_VALUES = 1 << DIGIT_BITS };

static size_t key_digit(uint64_t prefix, int digit) { return prefix >> digit * DIGIT_BITS & (DIGIT_VALUES - 1); }

static void key_count_digits(const struct sort_entry *entries, size_t count, size_t counts[DIGITS][DIGIT_VALUES]) {
    memset(counts, 0, DIGITS * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        for (int digit = 0; digit < DIGITS; digit++) counts[digit][key_digit(entries[i].prefix, digit)]++;
}

static void key_move_by_digit(const struct sort_entry *from, struct sort_entry *to, size_t count, int digit,
                              size_t starts[DIGIT_VALUES]) {
    size_t start = 0;
    for (int value = 0; value < DIGIT_VALUES; value++) {
        const size_t of_value = starts[value];
        starts[value] = start;
        start += of_value;
    }
    for (size_t i = 0; i < count; i++) to[starts[key_digit(from[i].prefix, digit)]++] = from[i];
}

/* `spare` has as much space. Returns where the sorted entries are: one of the two. */
static struct sort_entry *key_sort_entries(struct sort_entry *entries, struct sort_entry *spare, size_t count) {
    size_t counts[DIGITS][DIGIT_VALUES];
    key_count_digits(entries, count, counts);
    for (int digit = 0; digit < DIGITS && count > 0; digit++) {
        /* Keys of a small range have the same high digits. */
        if (counts[digit][key_digit(entries[0].prefix, digit)] == count) continue;
        key_move_by_digit(entries, spare, count, digit, counts[digit]);
        struct sort_entry *const sorted = spare;
        spare = entries;
        entries = sorted;
    }
    return entries;
}

struct sorted {
    const struct gathered_window *window;
    const struct sort_column *by;
};

/* Nulls follow the others, in their own order, at the end of the entries. Returns how many others there are. */
static uint32_t key_read_entries(const struct gathered_window *window, const struct sort_column *by,
                                 struct sort_entry *entries) {
    uint32_t values = 0, nulls = window->elements;
    for (uint32_t i = window->piece_count; i-- > 0;) {
        const struct piece *piece = &window->pieces[i];
        const supply_column_t *column = &piece->held->columns[by->index];
        for (uint32_t j = piece->count; j-- > 0;)
            if (exchange_is_null(column, piece->row + j)) entries[--nulls].element = piece->start + j;
    }
    for (uint32_t i = 0; i < window->piece_count; i++) {
        const struct piece *piece = &window->pieces[i];
        const supply_column_t *column = &piece->held->columns[by->index];
        for (uint32_t j = 0; j < piece->count; j++) {
            if (exchange_is_null(column, piece->row + j)) continue;
            entries[values++] = (struct sort_entry){by->order->prefix(column, piece->row + j), piece->start + j};
        }
    }
    return values;
}

static int key_compare_rests(const void *one, const void *other, void *context) {
    const struct sorted *sorted = context;
    const uint64_t a = ((const struct sort_entry *)one)->element, b = ((const struct sort_entry *)other)->element;
    struct sort_key key_a, key_b;
    exchange_read_key(sorted->window, sorted->by, (uint32_t)a, &key_a);
    exchange_read_key(sorted->window, sorted->by, (uint32_t)b, &key_b);
    const int order = exchange_key_compare(&key_a, &key_b);
    return order != 0 ? order : a < b ? -1 : 1;
}

/* Where the prefix does not say everything, the rest orders elements with the same one. */
static void key_sort_rests(struct sorted *sorted, struct sort_entry *entries, size_t count) {
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && entries[end].prefix == entries[begin].prefix;) end++;
        if (end - begin > 1) qsort_r(entries + begin, end - begin, sizeof *entries, key_compare_rests, sorted);
    }
}

uint32_t *exchange_sort_window(const struct gathered_window *window, const struct sort_column *by) {
    struct sort_entry *entries = calloc(window->elements, 2 * sizeof *entries);
    uint32_t *order = malloc((size_t)window->elements * sizeof *order);
    if (entries == NULL || order == NULL || window->elements == 0) {
        free(entries);
        free(order);
        return NULL;
    }
    const uint32_t values = key_read_entries(window, by, entries);
    struct sort_entry *sorted_entries = key_sort_entries(entries, entries + window->elements, values);
    struct sorted sorted = {window, by};
    if (by->order->rest != NULL) key_sort_rests(&sorted, sorted_entries, values);
    for (uint32_t i = 0; i < values; i++) order[i] = (uint32_t)sorted_entries[i].element;
    for (uint32_t i = values; i < window->elements; i++) order[i] = (uint32_t)entries[i].element;
    free(entries);
    return order;
}

/**
 * A radix sort: one pass over the entries for each digit of 11 bits in which they differ. The entries are the sorter's
 * own.
 */
#include "sort_entries.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS, DIGIT_VALUES = 1 << DIGIT_BITS };

static size_t digit_of(uint64_t prefix, int digit) { return prefix >> digit * DIGIT_BITS & (DIGIT_VALUES - 1); }

static void count_digits(const struct sort_entry *entries, size_t count, size_t counts[DIGITS][DIGIT_VALUES]) {
    memset(counts, 0, DIGITS * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        for (int digit = 0; digit < DIGITS; digit++) counts[digit][digit_of(entries[i].prefix, digit)]++;
}

static void move_by_digit(const struct sort_entry *from, struct sort_entry *to, size_t count, int digit,
                          size_t starts[DIGIT_VALUES]) {
    size_t start = 0;
    for (int value = 0; value < DIGIT_VALUES; value++) {
        const size_t of_value = starts[value];
        starts[value] = start;
        start += of_value;
    }
    for (size_t i = 0; i < count; i++) to[starts[digit_of(from[i].prefix, digit)]++] = from[i];
}

struct sort_entry *exchange_sort_entries(struct sort_entry *entries, struct sort_entry *spare, size_t count) {
    size_t counts[DIGITS][DIGIT_VALUES];
    count_digits(entries, count, counts);
    for (int digit = 0; digit < DIGITS && count > 0; digit++) {
        /* Keys of a small range have the same high digits. */
        if (counts[digit][digit_of(entries[0].prefix, digit)] == count) continue;
        move_by_digit(entries, spare, count, digit, counts[digit]);
        struct sort_entry *const sorted = spare;
        spare = entries;
        entries = sorted;
    }
    return entries;
}

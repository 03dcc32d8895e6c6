/** Sorts elements by their keys' prefixes: least significant digit first, so equal ones keep their order. */
#ifndef SUPPLY_SORT_ENTRIES_H
#define SUPPLY_SORT_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

struct sort_entry {
    uint64_t prefix;
    uint64_t element;
};

/** Sorts `count` entries by prefix; `spare` has as much space. Returns where the sorted entries are: one of the two. */
struct sort_entry *exchange_sort_entries(struct sort_entry *entries, struct sort_entry *spare, size_t count);

#endif

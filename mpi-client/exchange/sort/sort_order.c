#include "sort_order.h"

#include <stdlib.h>

#include "sort_entries.h"

struct sorted {
    const struct gathered_window *window;
    const struct sort_column *by;
};

/* Nulls follow the others, in their own order, at the end of the entries. Returns how many others there are. */
static uint32_t read_entries(const struct gathered_window *window, const struct sort_column *by,
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

static int compare_rests(const void *one, const void *other, void *context) {
    const struct sorted *sorted = context;
    const uint64_t a = ((const struct sort_entry *)one)->element, b = ((const struct sort_entry *)other)->element;
    struct sort_key key_a, key_b;
    exchange_read_key(sorted->window, sorted->by, (uint32_t)a, &key_a);
    exchange_read_key(sorted->window, sorted->by, (uint32_t)b, &key_b);
    const int order = exchange_key_compare(&key_a, &key_b);
    return order != 0 ? order : a < b ? -1 : 1;
}

/* Where the prefix does not say everything, the rest orders elements with the same one. */
static void sort_rests(struct sorted *sorted, struct sort_entry *entries, size_t count) {
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && entries[end].prefix == entries[begin].prefix;) end++;
        if (end - begin > 1) qsort_r(entries + begin, end - begin, sizeof *entries, compare_rests, sorted);
    }
}

uint32_t *exchange_sort_window(const struct gathered_window *window, const struct sort_column *by) {
    struct sort_entry *entries = malloc(2 * (size_t)window->elements * sizeof *entries);
    uint32_t *order = malloc((size_t)window->elements * sizeof *order);
    if (entries == NULL || order == NULL || window->elements == 0) {
        free(entries);
        free(order);
        return NULL;
    }
    const uint32_t values = read_entries(window, by, entries);
    struct sort_entry *sorted_entries = exchange_sort_entries(entries, entries + window->elements, values);
    struct sorted sorted = {window, by};
    if (by->order->rest != NULL) sort_rests(&sorted, sorted_entries, values);
    for (uint32_t i = 0; i < values; i++) order[i] = (uint32_t)sorted_entries[i].element;
    for (uint32_t i = values; i < window->elements; i++) order[i] = (uint32_t)entries[i].element;
    free(entries);
    return order;
}

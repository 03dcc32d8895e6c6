/** Merges sorted sequences of a window's elements: the next element of all is the smallest of their first ones. */
#ifndef SUPPLY_EXCHANGE_SORT_MERGE_H
#define SUPPLY_EXCHANGE_SORT_MERGE_H

#include "sort_order.h"

/** A sorted sequence of elements. */
struct sequence {
    const uint32_t *order; /**< indices; NULL: the elements stand in their order */
    uint32_t at;
    uint32_t end;
    struct sort_key key; /**< of element `at` */
};

/** A heap of sequences that are not empty, the one with the smallest element on top. */
struct merge {
    const struct gathered_window *window;
    const struct sort_column *by;
    struct sequence **heap;
    uint32_t count;
};

/** Begins with `count` sequences, which stay in use, as the window and `by`. False: out of memory. */
bool exchange_merge_begin(struct merge *merge, const struct gathered_window *window, const struct sort_column *by,
                          struct sequence *sequences, uint32_t count);
void exchange_merge_free(struct merge *merge);

/** The index of the smallest element that is left. merge->count is not 0. */
static inline uint32_t exchange_merge_peek(const struct merge *merge) {
    const struct sequence *top = merge->heap[0];
    return top->order ? top->order[top->at] : top->at;
}

/** Goes to the next one. */
void exchange_merge_pop(struct merge *merge);

#endif

#include "sort_merge.h"

#include <stdlib.h>

static void read_key(const struct merge *merge, struct sequence *sequence) {
    const uint32_t element = sequence->order ? sequence->order[sequence->at] : sequence->at;
    exchange_read_key(merge->window, merge->by, element, &sequence->key);
}

/* Of equal elements those of the earlier sequence come first. The sequences lie in one array. */
static bool is_before(const struct sequence *one, const struct sequence *other) {
    const int order = exchange_key_compare(&one->key, &other->key);
    return order != 0 ? order < 0 : one < other;
}

static void sift_down(struct merge *merge, uint32_t at) {
    struct sequence **heap = merge->heap;
    for (;;) {
        uint32_t smallest = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < merge->count; child++)
            if (is_before(heap[child], heap[smallest])) smallest = child;
        if (smallest == at) return;
        struct sequence *const moved = heap[at];
        heap[at] = heap[smallest];
        heap[smallest] = moved;
        at = smallest;
    }
}

bool exchange_merge_begin(struct merge *merge, const struct gathered_window *window, const struct sort_column *by,
                          struct sequence *sequences, uint32_t count) {
    *merge =
        (struct merge){.window = window, .by = by, .heap = (struct sequence **)calloc(count + 1, sizeof *merge->heap)};
    if (merge->heap == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        if (sequences[i].at < sequences[i].end) merge->heap[merge->count++] = &sequences[i];
    /* One sequence needs no keys. */
    for (uint32_t i = 0; i < merge->count && merge->count > 1; i++) read_key(merge, merge->heap[i]);
    for (uint32_t i = merge->count / 2; i-- > 0;) sift_down(merge, i);
    return true;
}

void exchange_merge_free(struct merge *merge) {
    free((void *)merge->heap);
    *merge = (struct merge){0};
}

void exchange_merge_pop(struct merge *merge) {
    struct sequence *const top = merge->heap[0];
    if (++top->at == top->end) {
        merge->heap[0] = merge->heap[--merge->count];
    } else if (merge->count > 1) {
        read_key(merge, top);
    }
    sift_down(merge, 0);
}

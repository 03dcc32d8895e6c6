#include "matrices.h"

#include <stdlib.h>

struct keys *keys_new(void) {
    struct keys *keys = calloc(1, sizeof *keys);
    if (keys != NULL) keys->users = 1;
    return keys;
}

struct keys *keys_share(struct keys *keys) {
    if (keys != NULL) keys->users++;
    return keys;
}

void keys_release(struct keys *keys) {
    if (keys == NULL || --keys->users > 0) return;
    growing_free(&keys->values);
    growing_free(&keys->ends);
    free(keys);
}

struct held *held_new(uint64_t handle) {
    struct held *held = calloc(1, sizeof *held);
    if (held != NULL) held->handle = handle;
    return held;
}

void held_free(struct held *held) {
    if (held == NULL) return;
    keys_release(held->keys);
    growing_free(&held->values);
    growing_free(&held->offsets);
    growing_free(&held->columns);
    free(held);
}

void matrices_add(struct matrices *matrices, struct held *held) {
    held->next = matrices->first;
    matrices->first = held;
}

struct held *matrices_find(const struct matrices *matrices, uint64_t handle) {
    struct held *held = matrices->first;
    while (held != NULL && held->handle != handle) held = held->next;
    return held;
}

bool matrices_drop(struct matrices *matrices, uint64_t handle) {
    for (struct held **at = &matrices->first; *at != NULL; at = &(*at)->next)
        if ((*at)->handle == handle) {
            struct held *held = *at;
            *at = held->next;
            held_free(held);
            return true;
        }
    return false;
}

void matrices_drop_all(struct matrices *matrices) {
    while (matrices->first != NULL) matrices_drop(matrices, matrices->first->handle);
}

json_t *held_describe(const struct held *held) {
    return json_pack("{s:I, s:s, s:I, s:I, s:b}", "handle", (json_int_t)held->handle, "kind",
                     held->is_array ? "array" : "rows", "rows", (json_int_t)held->part.rows, "columns",
                     (json_int_t)held->part.columns, "sparse", held->part.row_offsets != NULL);
}

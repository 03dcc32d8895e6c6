/**
 * The list of this rank's parts of matrices, with counted users of their keys, and whose they are. The main thread
 * alone uses it.
 */
#include "matrices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ranks.h"

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

static const char *text_in(const json_t *command, const char *name) {
    const char *text = json_string_value(json_object_get(command, name));
    return text == NULL ? "" : text;
}

bool program_sends(struct program *program, const json_t *command, char *text) {
    if (program->id[0] != '\0' && strcmp(program->id, text_in(command, "program")) == 0) {
        program->last_command = supply__clock_now();
        return true;
    }
    if (program->id[0] == '\0')
        return refuse(text, "the ranks have been detached from this program: attach to them again");
    return refuse(text, "the program %s has taken the ranks over", program->name);
}

bool program_may_attach(const struct program *program, const json_t *command, char *text) {
    const char *id = text_in(command, "program");
    if (id[0] == '\0' || strlen(id) >= sizeof program->id) {
        return refuse(text, "a program that attaches names itself");
    }
    if (program->id[0] != '\0' && strcmp(program->id, id) != 0 &&
        !json_is_true(json_object_get(command, "take_over"))) {
        return refuse(text,
                      "the ranks hold matrices for the program %s, whose last command came %" PRId64
                      " s ago: close its Ranks, or take them over (take_over), which drops its matrices",
                      program->name, (supply__clock_now() - program->last_command) / NANOSECONDS);
    }
    return true;
}

void program_attach(struct program *program, const json_t *command) {
    *program = (struct program){.last_command = supply__clock_now()};
    snprintf(program->id, sizeof program->id, "%s", text_in(command, "program"));
    snprintf(program->name, sizeof program->name, "%s", text_in(command, "name"));
}

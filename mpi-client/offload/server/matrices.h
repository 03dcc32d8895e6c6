/**
 * The Spark program that the ranks belong to, one at a time, and the matrices that it has handles of: this rank's
 * parts.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "ranks.h"
#include "supply.h"
#include "supply_routine.h"

/** The keys of rows, in their order. Matrices with the same rows share them. */
struct keys {
    unsigned users;
    char format[32]; /**< of the Arrow C Data Interface; "": the rows have no keys */
    struct growing values;
    struct growing ends; /**< for keys of any length: the end of each in `values`, 64 bits */
    uint64_t count;
};

/** One matrix: its rows on all ranks, or a small array that each rank has. */
struct held {
    uint64_t handle;
    bool is_array;
    supply_matrix_t part;
    struct keys *keys;      /**< NULL: an array */
    struct growing values;  /**< of `part`; entries if it is sparse */
    struct growing offsets; /**< sparse */
    struct growing columns; /**< sparse */
    struct held *next;
};

struct matrices {
    struct held *first;
};

struct keys *keys_new(void);
struct keys *keys_share(struct keys *keys);
void keys_release(struct keys *keys);

/** An empty matrix, not in the list yet. NULL: no memory. */
struct held *held_new(uint64_t handle);
void held_free(struct held *held);

/** Adds it to the list, which frees it. */
void matrices_add(struct matrices *matrices, struct held *held);

/** NULL: there is no such handle. */
struct held *matrices_find(const struct matrices *matrices, uint64_t handle);

/** False: there is no such handle. */
bool matrices_drop(struct matrices *matrices, uint64_t handle);
void matrices_drop_all(struct matrices *matrices);

/** What the caller learns about a matrix: handle, kind, rows, columns. */
json_t *held_describe(const struct held *held);

/** id: random, of one attachment; "": none is attached. name: as its user knows it. */
struct program {
    char id[64];
    char name[256];
    int64_t last_command; /**< of the monotonic clock */
};

/** Whether a command is of the attached program. False: text says whose the ranks are. */
bool program_sends(struct program *program, const json_t *command, char *text);

/**
 * Whether the program of a command may attach: it has an id ("program"), and no other program is attached, or it takes
 * the ranks over ("take_over"). False: text says why not.
 */
bool program_may_attach(const struct program *program, const json_t *command, char *text);

/** Attaches the program of a command, with its "name". */
void program_attach(struct program *program, const json_t *command);

/**
 * Writes the rows of this rank: the columns "key", if the rows have keys, and "row", a list of numbers. Of an array,
 * rank 0 writes all rows. name: of the result. options: of the pair, with the results folder. False: text says why.
 */
bool write_matrix(const struct held *held, const struct ranks *ranks, const supply_options_t *options, const char *name,
                  char *text);

/** Removes what write_matrix() has written with these options, because Spark will not read it: a rank has failed. */
void remove_written(const supply_options_t *options);

/**
 * Blocks of libsupply through the Arrow C Data Interface, nothing copied: for any library that imports it, or by hand.
 *
 *     struct ArrowSchema schema;
 *     struct ArrowArray array;
 *     if (supply_export_arrow(supply, &block, SUPPLY_ALL_COLUMNS, &schema, &array) != SUPPLY_OK)
 *         die(supply_error(supply));
 *     supply_release(supply, &block); // the array still holds the block
 *     use(&schema, &array);
 *     array.release(&array);
 *     schema.release(&schema);
 */
#ifndef SUPPLY_ARROW_H
#define SUPPLY_ARROW_H

#include "supply.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The structures of the Arrow C Data Interface, under the guard that every header with them has. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

/** Every column of the block, as the children of one struct array: a record batch. Not the -1 of supply_column_index().
 */
#define SUPPLY_ALL_COLUMNS (SIZE_MAX - 1)

/**
 * Exports column `index` of a held block, or SUPPLY_ALL_COLUMNS of them. Either of schema and array may be NULL.
 *
 * The array's buffers lie in the mapped file. The array holds the block, too, beside the program itself: the task gets
 * the block's space, and the block counts as consumed, when it has been released by supply_release() and by each of its
 * arrays, and so have all blocks before it. Children that are moved out of an array count as arrays. The schema is a
 * copy.
 *
 * The release callbacks may be called by any thread, also while another one uses the handle, and also after
 * supply_close(), until when the buffers stay readable; what a forked child releases changes nothing.
 *
 * SUPPLY_OK, or _ARGUMENT (the block is not held, there is no such column), _CONTRACT (a format that this library does
 * not know), _MEMORY. On failure neither structure is written.
 */
SUPPLY_API supply_status_t supply_export_arrow(supply_t *supply, const supply_block_t *block, size_t index,
                                               struct ArrowSchema *schema, struct ArrowArray *array);

#ifdef __cplusplus
}
#endif

#endif

/**
 * Blocks of libsupply through the Arrow C Data Interface, for any library that imports it, or by hand.
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

/* The structures of the Arrow C interfaces, under the guards that every header with them has. */
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

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/** Every column, as the children of one struct array: a record batch. */
#define SUPPLY_ALL_COLUMNS (-1)

/**
 * Exports column `index` of a held block, or SUPPLY_ALL_COLUMNS of it. Either of schema and array may be NULL. If array
 * is NULL, block may be NULL, too: the schema needs no block.
 *
 * The array's buffers are in the mapped file, except offsets and views, which are copied, and values in place. A column
 * of values in place has the format "vz", Arrow's BinaryView, and the buffers of its values are parts of the foreign
 * file in which they are. After supply_close() the library does not check this file any more, and nothing delays a
 * program that writes to it or cuts it.
 *
 * The array holds the block in addition to the program: the block counts as consumed, and the task gets its slot, after
 * supply_release() and after the release of each of its arrays, and the same for all blocks before it. Children that
 * are moved out of an array count as arrays. The schema is a copy.
 *
 * Any thread may call the release callbacks, while another thread uses the handle, and after supply_close(); the
 * buffers stay readable until then. In a forked child the callbacks free memory only, and the child does not hold the
 * block: when the parent has released it, later blocks change the child's buffers, too.
 *
 * SUPPLY_OK, or _ARGUMENT (the block is not held), _NO_COLUMN, _NO_SCHEMA, _CONTRACT (a format that this library does
 * not know, or a block that changed while it was held), _MEMORY. On failure neither structure is written.
 */
SUPPLY_API supply_status_t supply_export_arrow(supply_t *supply, const supply_block_t *block, int index,
                                               struct ArrowSchema *schema, struct ArrowArray *array);

/**
 * Exports the rest of the current epoch as a stream of record batches, one for each block; the stream ends with the
 * epoch. For the next epoch export another stream. After the last epoch a stream is empty, and supply_next() returns
 * SUPPLY_END_OF_DATA.
 *
 * get_schema and get_next wait as supply_next() does. They count as calls on the handle: use them from one thread at a
 * time, and do not call supply_next() or supply_next_datum() before the stream has ended. They return 0, or an errno
 * (ETIMEDOUT, ENOMEM, EINTR, EINVAL after supply_close(), EIO, or that of a failed system call), and get_last_error
 * then returns the text of supply_error(). Release the stream before or after supply_close().
 *
 * SUPPLY_OK, or _ARGUMENT, _MEMORY.
 */
SUPPLY_API supply_status_t supply_export_stream(supply_t *supply, struct ArrowArrayStream *stream);

#ifdef __cplusplus
}
#endif

#endif

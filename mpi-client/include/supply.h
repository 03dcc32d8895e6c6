/**
 * libsupply: an MPI rank reads, in place, the data that Spark supplies.
 *
 *     supply_t *supply;
 *     supply_block_t block;
 *     supply_column_t labels;
 *     supply_open(&supply, NULL); // if it fails, each later call fails with its status and text
 *     do
 *         while (supply_next(supply, &block) == SUPPLY_OK) {
 *             if (supply_column_named(supply, &block, "label", "i", &labels) != SUPPLY_OK) break;
 *             train(labels.data, labels.element_count);
 *             supply_release(supply, &block);
 *         }
 *     while (supply_status(supply) == SUPPLY_END_OF_EPOCH);
 *     char why[SUPPLY_TEXT_BYTES];
 *     if (supply_finish(supply, why) < 0) die(why);
 *
 * Compile it with one of these lines:
 *
 *   cc rank.c $(pkg-config --cflags --libs supply)
 *   cc -I PREFIX/include rank.c -L PREFIX/lib -lsupply
 *
 * A rank opens its side of one pair: a mapped file and two named pipes. The rank creates, owns and removes these files.
 * A Spark task fills blocks in the mapped file and notifies the rank. The rank reads the blocks in place and releases
 * them. proto/PROTOCOL.md is the contract.
 *
 * Threads: use a handle from one thread at a time. Any thread may release its Arrow arrays (supply_arrow.h). Different
 * handles are independent.
 *
 * Processes: a handle belongs to the process that opened it. A child that is forked and does not exec (a worker of a
 * DataLoader) inherits the pair's descriptors, which makes the rank look alive to Spark even after it died. Such a
 * child must call supply_abandon_in_child(). In a child supply_close() and supply_abort() do the same, for example in a
 * function of atexit(), and calls that receive or release fail with SUPPLY_ERROR_ARGUMENT.
 *
 * The library never prints, never exits, raises no signal, and keeps no global state. Every wait ends after the time
 * limit of the options, and earlier if options.interrupted says so.
 *
 * Environment: what the options leave open, the library takes from these variables, and from no others:
 *
 *   SUPPLY_MAPPED_FILES, SUPPLY_NAMED_PIPES   the config files
 *   SUPPLY_CONNECT, SUPPLY_KEY                a run elsewhere (options.connect)
 *   SUPPLY_TIMEOUT                            time limit of each wait in seconds
 *   SUPPLY_RESULTS_FOLDER                     where results lie (supply_result.h)
 *   SUPPLY_SHARE                              which ranks read one ring (options.readers)
 *   LOCAL_RANK, RANK, WORLD_SIZE, and those of MPI's launchers, Flux and Slurm: supply_local_rank()
 *
 * Compatibility: programs and libraries of one major version work together (before 1.0: of one minor version).
 */
#ifndef SUPPLY_H
#define SUPPLY_H

#include "supply_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this header. The build reads it from here. */
#define SUPPLY_VERSION_MAJOR 0
#define SUPPLY_VERSION_MINOR 3
#define SUPPLY_VERSION_PATCH 0

/** The version of the loaded library ("0.3.0"), and of the contract that it implements ("1.6"). */
SUPPLY_API const char *supply_version(void);
SUPPLY_API const char *supply_contract_version(void);

/** One side of one pair. Opaque. */
typedef struct supply supply_t;

/**
 * Creates the pair and returns without waiting for Spark (but see options.reader). The folder of each file must belong
 * to this user, and no other user may be able to write to it (unless it is sticky). Missing folders are created with
 * mode 0700. Symbolic links are not followed.
 *
 * options may be NULL: everything from the environment. On failure *supply is a handle that must be closed, too, and
 * every other call on it returns the same failure; it is NULL if there is no memory even for that.
 *
 * SUPPLY_OK, or _ARGUMENT, _CONFIG, _IN_USE, _NO_SPACE, _SYSTEM, _MEMORY. Of a reader that is not the first also
 * _TIMEOUT, _INTERRUPTED, _CONTRACT.
 */
SUPPLY_API supply_status_t supply_open(supply_t **supply, const supply_options_t *options);

/**
 * Closes the pair: releases the blocks that are still held, removes the files, and frees the handle. Pointers into the
 * mapping become invalid, except those of Arrow arrays that are not released yet. NULL is allowed.
 *
 * Before SUPPLY_END_OF_DATA Spark is told that the rank stopped early, and its run fails. After it, the call first
 * waits, at most the time limit, until the task knows that the rank has everything. This usually takes no time; if the
 * task has just died, its next attempt needs the pair for it.
 *
 * SUPPLY_OK; SUPPLY_INTERRUPTED: the handle is still open, so call this again, or supply_abort(). Every other status
 * frees the handle: _TIMEOUT (the task did not confirm the end), _SPARK (the run failed elsewhere meanwhile), _SYSTEM
 * (a pipe could not be read or a file not be removed; errno says why), _CONTRACT (another program wrote into the pipe).
 */
SUPPLY_API supply_status_t supply_close(supply_t *supply);

/** Enough bytes for the text of any failure, its terminating zero byte included. */
#define SUPPLY_TEXT_BYTES 2048

/**
 * Same as supply_close(), but waits at most `seconds`, and then returns SUPPLY_AGAIN: the handle is still open, so call
 * this again, or supply_abort(). Repeated calls share one time limit. text: SUPPLY_TEXT_BYTES bytes, which say why the
 * call failed; or NULL.
 */
SUPPLY_API supply_status_t supply_close_within(supply_t *supply, double seconds, char *text);

/**
 * The end of a program's loop: closes the pair, and says what failed first, from supply_open() on. text:
 * SUPPLY_TEXT_BYTES bytes for one line, which outlives the handle; or NULL.
 *
 * At the end of the data as supply_close(). Elsewhere Spark's run fails with the text: supply_status() is the status of
 * what failed, or _ARGUMENT: nothing did, but the program has not read everything (supply_skip_rest()). SUPPLY_OK,
 * SUPPLY_INTERRUPTED, and the errors of supply_close(), or that of another call; _MEMORY if supply is NULL.
 */
SUPPLY_API supply_status_t supply_finish(supply_t *supply, char *text);

/**
 * Tells Spark why this rank fails (the Supplier prints the text), then closes the pair without waiting. After
 * SUPPLY_END_OF_DATA Spark is not told: the rank has everything. NULL is allowed. SUPPLY_OK, or _SYSTEM (a file could
 * not be removed; errno says why). The handle is freed in any case.
 */
SUPPLY_API supply_status_t supply_abort(supply_t *supply, const char *reason);

/**
 * For a forked child: closes its copies of the pair's descriptors and frees its copy of the handle. The pair and the
 * parent's handle do not change. The mapping stays readable in the child. NULL is allowed. SUPPLY_OK, or _ARGUMENT in
 * the process that opened the handle: then nothing happens.
 */
SUPPLY_API supply_status_t supply_abandon_in_child(supply_t *supply);

/**
 * Text of the last call on this handle that returned a negative status: one line that names the pair, the file and the
 * setting to change. Valid until the next call. Calls on a const handle do not change the text. NULL: text for a handle
 * that supply_open() could not allocate. Never NULL.
 */
SUPPLY_API const char *supply_error(const supply_t *supply);

/** errno of that failure if its status is SUPPLY_ERROR_SYSTEM; else 0. */
SUPPLY_API int supply_error_errno(const supply_t *supply);

/**
 * Where the handle is: the negative status of a call that has failed since the last call to receive, or of that call,
 * or of supply_open(); otherwise what the last call to receive returned; SUPPLY_OK before the first. _MEMORY if supply
 * is NULL. So a loop may end at any status but SUPPLY_OK, and ask here.
 */
SUPPLY_API supply_status_t supply_status(const supply_t *supply);

/** A block in the mapped file: the values of many elements. */
typedef struct supply_block_t {
    uint64_t sequence;      /**< number of the block within the run, from 0 */
    uint32_t epoch;         /**< from 0 */
    uint32_t partition;     /**< of the Spark data set, from 0 */
    uint64_t first_element; /**< index of the block's first element within its partition */
    uint32_t element_count; /**< elements, at least 1 */
    int column_count;       /**< columns */
    const void *address;    /**< of the block, 64-byte aligned */
    size_t bytes;           /**< of the block */
} supply_block_t;

/**
 * Waits for the next block, at most the time limit. The block stays valid, and occupies a slot of the ring, until
 * supply_release(). A program may hold several blocks at once, but not the whole ring. The call after
 * SUPPLY_END_OF_EPOCH tells Spark that the rank has finished that epoch: a stream does not repeat it, so save a
 * position before that call.
 *
 * SUPPLY_OK; SUPPLY_END_OF_EPOCH (block->epoch says which; there is nothing to release); SUPPLY_END_OF_DATA;
 * SUPPLY_INTERRUPTED; or _TIMEOUT, _SPARK, _CONTRACT, _SYSTEM (also if a file of values in place cannot be read or has
 * changed), _MEMORY, _ALL_HELD, _ARGUMENT (no handle or block; or the elements must be exchanged). After an error other
 * than _TIMEOUT, _ALL_HELD and that of a missing handle or block, every later call returns the same error.
 */
SUPPLY_API supply_status_t supply_next(supply_t *supply, supply_block_t *block);

/**
 * Same as supply_next(), but returns SUPPLY_AGAIN instead of waiting. Use it together with supply_fd(). If all calls
 * find nothing for longer than the time limit, it returns _TIMEOUT, so a poll loop that wakes up now and then has a
 * time limit, too.
 */
SUPPLY_API supply_status_t supply_try_next(supply_t *supply, supply_block_t *block);

/**
 * Receives and releases everything that is left, so that a rank that needs no more ends with success, and Spark's run
 * too. It takes as long as Spark takes to supply the rest: of a stream, until the stream ends. The blocks that the
 * program holds must be released. SUPPLY_END_OF_DATA, or as supply_next().
 */
SUPPLY_API supply_status_t supply_skip_rest(supply_t *supply);

/**
 * Releases a block. Blocks may be released in any order. The task gets the slot back when the block and all of its
 * Arrow arrays (supply_arrow.h) are released, and those of every earlier block. SUPPLY_OK, or _ARGUMENT if the block is
 * not held.
 */
SUPPLY_API supply_status_t supply_release(supply_t *supply, const supply_block_t *block);

/**
 * Name and type of a column. The texts are valid as long as the handle.
 *
 * format is a format string of the Arrow C Data Interface:
 *
 *   format       type in Spark              values in supply_column_t
 *   "b"          boolean                    bits: value i is bit i % 8 (1 << i % 8) of byte i / 8 of data
 *   "c" "s"      tinyint, smallint          int8_t, int16_t
 *   "i" "l"      int, bigint                int32_t, int64_t
 *   "f" "g"      float, double              float, double
 *   "u" "z"      string, binary             bytes, where offsets says; a text is UTF-8 and not terminated
 *   "tdD"        date                       int32_t: days since 1970-01-01
 *   "tsu:UTC"    timestamp                  int64_t: microseconds since 1970-01-01 00:00 UTC
 *   "tsu:"       timestamp_ntz              int64_t: the same of a wall clock, without a zone
 *   "d:P,S"      decimal(P, S)              16 bytes, a signed integer, little endian: the value times 10 to the S
 *   "tiM" "tDu"  interval                   int32_t: months; int64_t: microseconds
 *   "ttn"        time                       int64_t: nanoseconds since midnight
 *   "e"          (option half)              2 bytes: an IEEE 754 half-precision number
 *   "+w:N"       array, all of one length   N values of child_format for each element, without gaps
 *   "+l"         array                      value i is the elements offsets[i] to offsets[i + 1] of child 0
 *   "+s"         struct                     a child for each field, with as many elements
 *   "+m"         map                        as "+l", and child 0 is a struct: child 0 the keys, child 1 the values
 *   "vz"         (a Datum in place)         views, and the windows to which they refer
 *
 * Spark has no unsigned integers, but results may: "C" uint8_t, "S" uint16_t, "I" uint32_t, "L" uint64_t. Numbers are
 * little endian, as this machine's.
 *
 * Nulls: a nullable column may have validity bits, in the same order as those of "b": 0 is null. A null has its place
 * among the values. There it is 0 or false, N zeros, or 0 bytes; but rely on validity alone. What the children have
 * for it means nothing.
 *
 * Children: supply_field_child() and supply_column_child() have the values within others. A list "+w:N" of numbers that
 * are never null has none: its numbers are its data.
 */
typedef struct supply_field_t {
    const char *name; /**< of a child that has none: "item" of a list, "entries" of a map */
    bool nullable;
    const char *format;       /**< see above */
    const char *child_format; /**< format of the values of a list; else "" */
    int child_count;          /**< children */
    uint32_t entry;           /**< for supply_field_child() */
} supply_field_t;

/**
 * Waits until the schema is known, at most the time limit: until a task has attached. No block is received, so call
 * supply_next() as usual afterwards.
 *
 * SUPPLY_OK; SUPPLY_INTERRUPTED; or _TIMEOUT, _SPARK, _CONTRACT, _SYSTEM, _MEMORY, _ARGUMENT (no handle).
 */
SUPPLY_API supply_status_t supply_wait_schema(supply_t *supply);

/**
 * The schema is known as soon as a task has attached (supply_wait_schema()); no block needs to be held.
 *
 * supply_column_count(): how many columns there are. supply_column_index(): index of the column of that name, from 0.
 * Both return a negative supply_status_t on failure: _NO_SCHEMA, _CONTRACT, _MEMORY, _ARGUMENT, and the second one
 * _NO_COLUMN. supply_field(): name and type of a column. SUPPLY_OK, or the same errors.
 */
SUPPLY_API int supply_column_count(supply_t *supply);
SUPPLY_API int supply_column_index(supply_t *supply, const char *name);
SUPPLY_API supply_status_t supply_field(supply_t *supply, int index, supply_field_t *field);

/**
 * Name and type of child `child`, from 0, of a field. SUPPLY_OK, or as supply_field(); _NO_COLUMN: it has no such
 * child.
 */
SUPPLY_API supply_status_t supply_field_child(supply_t *supply, const supply_field_t *field, int child,
                                              supply_field_t *found);

/** A value of a column of views (format "vz"), as in Arrow's BinaryView. supply_value() finds its bytes. */
typedef struct supply_view_t {
    int32_t bytes;    /**< of the value */
    uint8_t start[4]; /**< its first bytes. A value of at most 12 bytes stands here, and in the next two fields */
    int32_t window;   /**< of a longer value: index of its window */
    int32_t offset;   /**< of a longer value: where it begins in its window */
} supply_view_t;

/**
 * A part of a file that is not the pair's, mapped read-only, for example of an LMDB. Nobody may write to that file
 * during the run: if a program has, the next call that receives fails with SUPPLY_ERROR_SYSTEM.
 */
typedef struct supply_window_t {
    /** mapped until supply_close(), and longer for an Arrow array: then readable while nobody writes to the file */
    const void *address;
    size_t bytes; /**< below 2 GiB */
} supply_window_t;

/** Buffers of one column of one block, in Arrow's columnar layout, in place. */
typedef struct supply_column_t {
    const char *name;        /**< as in supply_field_t */
    const char *format;      /**< as in supply_field_t */
    uint32_t element_count;  /**< elements */
    uint32_t null_count;     /**< elements that are null */
    const uint8_t *validity; /**< bit i % 8 of byte i / 8 set: element i is valid; NULL: all are */
    /**
     * element_count + 1; NULL: fixed width, or views. Element i of texts and bytes is the bytes offsets[i] to
     * offsets[i + 1] of data, of a list those elements of its child
     */
    const int32_t *offsets;
    /** the values, or their views, 64-byte aligned; never NULL. Of a list: the data of its child */
    const void *data;
    size_t data_bytes;              /**< of data */
    const char *child_format;       /**< as in supply_field_t */
    const supply_view_t *views;     /**< the same as data, if it holds views: the values are in place; else NULL */
    const supply_window_t *windows; /**< where they are; valid until the block is released */
    uint32_t window_count;          /**< windows */
    int child_count;                /**< children */
    uint32_t entry;                 /**< for supply_column_child() */
} supply_column_t;

/**
 * Column `index` of a held block. Nothing is copied. The pointers are valid until the block is released. SUPPLY_OK, or
 * _ARGUMENT, _NO_COLUMN, _CONTRACT (a format that this library does not know).
 */
SUPPLY_API supply_status_t supply_column(supply_t *supply, const supply_block_t *block, int index,
                                         supply_column_t *column);

/**
 * The column of that name, if it has that format: supply_field_t lists them. That of a list is followed by that of its
 * values: "+w:64f", "+li". "z" stands for "vz", too, and NULL for any. As supply_column(), and _NO_COLUMN: there is no
 * such column, or it has another format.
 */
SUPPLY_API supply_status_t supply_column_named(supply_t *supply, const supply_block_t *block, const char *name,
                                               const char *format, supply_column_t *column);

/** Whether element `index` of a column is null. */
static inline bool supply_is_null(const supply_column_t *column, uint32_t index) {
    return column->validity != NULL && (column->validity[index / 8] >> index % 8 & 1) == 0;
}

/**
 * Child `child`, from 0, of a column of a held block, or of another child. SUPPLY_OK, or as supply_column();
 * _NO_COLUMN: it has no such child.
 */
SUPPLY_API supply_status_t supply_column_child(supply_t *supply, const supply_block_t *block,
                                               const supply_column_t *column, int child, supply_column_t *found);

/**
 * Value `index` of a column of bytes, text or views: where it is, and how long. A program that reads values of any
 * length with this call works with and without --in-place. Nothing is copied. The value is valid until the block is
 * released. It is checked against the column once more. The call has no handle and leaves no text for supply_error():
 * print supply_status_name(). SUPPLY_OK, or _ARGUMENT (no such element, or another format), _CONTRACT (something else
 * has written into the mapped file).
 */
static inline supply_status_t supply_value(const supply_column_t *column, uint32_t index, const void **data,
                                           size_t *bytes);

/**
 * Copies `count` values of such a column, from element `first` on, one after the other to `to`, which has `to_bytes`
 * bytes. Stores the place of each value's end in `ends`, unless that is NULL. With `to` NULL it copies nothing: call it
 * so first, and the last end is the space that the copy needs. Returns as supply_value(), without a text, too;
 * _ARGUMENT also if the values do not fit.
 */
SUPPLY_API supply_status_t supply_gather(const supply_column_t *column, uint32_t first, uint32_t count, int64_t *ends,
                                         void *to, size_t to_bytes);

/** supply_value() with every check. */
SUPPLY_API supply_status_t supply_value_checked(const supply_column_t *column, uint32_t index, const void **data,
                                                size_t *bytes);

static inline supply_status_t supply_value(const supply_column_t *column, uint32_t index, const void **data,
                                           size_t *bytes) {
    if (column == NULL || column->offsets == NULL || column->child_count != 0 || index >= column->element_count ||
        data == NULL || bytes == NULL)
        return supply_value_checked(column, index, data, bytes);
    /* Another program may write to them: each is read once. */
    const volatile int32_t *offsets = column->offsets + index;
    const int32_t begin = offsets[0], end = offsets[1];
    if (begin < 0 || end < begin || (size_t)end > column->data_bytes) return SUPPLY_ERROR_CONTRACT;
    *data = (const uint8_t *)column->data + begin;
    *bytes = (size_t)(end - begin);
    return SUPPLY_OK;
}

/**
 * A descriptor for poll(), select(), epoll and event loops: readable when supply_try_next() may have something. Call
 * supply_try_next() until it returns SUPPLY_AGAIN, then poll. Never read or close the descriptor. -1: not open.
 */
SUPPLY_API int supply_fd(const supply_t *supply);

/**
 * Address of the whole mapped file in this process (to register it with a device), and its length. Everything past the
 * header is mapped read-only.
 */
SUPPLY_API const void *supply_mapping(const supply_t *supply, size_t *bytes);

/** What each whole epoch has for this rank. */
typedef struct supply_counts_t {
    uint64_t epoch_elements; /**< elements */
    uint64_t epoch_steps;    /**< blocks, each of --block-elements elements, with --uneven drop or pad; 0: not known */
} supply_counts_t;

/**
 * Elements and steps of an epoch, for len() and progress. An epoch that begins at a position has fewer. With --uneven
 * drop or pad, both numbers are the same on all ranks.
 *
 * Known as soon as a task has attached, if the data is an LMDB or Spark counted it (--uneven). Otherwise known from the
 * end of the first epoch that one attempt of the task has supplied from its beginning. If the first epoch is the rest
 * of one (--resume-positions), not known before a later epoch. Never known of a stream.
 *
 * SUPPLY_OK; SUPPLY_AGAIN: not known, or not yet, and both numbers are 0; or _CONTRACT, _ARGUMENT.
 */
SUPPLY_API supply_status_t supply_counts(supply_t *supply, supply_counts_t *counts);

/** Totals of an exchange (supply_exchange.h), as this rank sees them. All are 0 without one. */
typedef struct supply_exchange_statistics_t {
    uint32_t ranks;
    uint32_t copying_ranks;   /**< other ranks into whose memory this one copies; the rest get messages */
    uint32_t forwarded_ranks; /**< other nodes' ranks, which get messages through one rank of their node; sent_bytes
                                   counts them */
    uint64_t window_bytes;    /**< size of a window */
    uint64_t windows;         /**< that this rank has gathered */
    uint64_t rounds;          /**< more than windows: memory for one round is not enough, or an epoch ends unevenly */
    uint64_t collectives;     /**< collective operations */
    uint64_t copied_bytes;    /**< of elements, to those ranks and to itself */
    uint64_t sent_bytes;      /**< of elements, in messages */
    /** The exchange's time, also while the program computes: */
    double seconds_gathering; /**< until Spark has supplied the next window */
    double seconds_agreeing;  /**< with all ranks: on a window, on its order, and on what each takes */
    double seconds_copying;   /**< and to pack messages, until neighbours have copied, and to make the block */
    double seconds_sending;   /**< until all messages have come, and are copied */
} supply_exchange_statistics_t;

/** Totals of a handle. */
typedef struct supply_statistics_t {
    uint64_t elements;     /**< elements in received blocks */
    uint64_t blocks;       /**< received blocks */
    uint64_t bytes;        /**< bytes of those blocks, and of the values that they refer to */
    double seconds_waited; /**< time without a block to hand out, with supply_try_next() from its first SUPPLY_AGAIN */
    supply_exchange_statistics_t exchange;
} supply_statistics_t;

SUPPLY_API void supply_statistics(const supply_t *supply, supply_statistics_t *statistics);

/**
 * The handle's position: the rank has consumed everything before it, and nothing after it. A block is consumed when it
 * and all blocks before it are released; a Datum, when supply_next_datum() has returned it. A rank that opens its next
 * pair with this position receives exactly the rest. SUPPLY_OK or _ARGUMENT.
 *
 * Nothing is written: the program stores the position. After a restart (supply-run --max-restarts) it must not meet a
 * new position beside an old model, which skips elements, or the other way round, which repeats them. So store the
 * positions of all ranks, as text, inside the checkpoint: one file, written under another name, then renamed. If a rank
 * has a file of its own, name all files of a checkpoint by their step, and write last, by one rank after a barrier, the
 * file that says which step is complete. Save all positions between the same two steps. examples/digits_checkpoint.h
 * does the former.
 */
SUPPLY_API supply_status_t supply_position_save(const supply_t *supply, supply_position_t *position);

/**
 * The position after the first `elements` elements of a block that supply_next() has returned, held or not; or, for the
 * block of SUPPLY_END_OF_EPOCH (elements: 0), after that epoch. Use it if the program itself counts what it has
 * consumed, for example with mini-batches of its own size. SUPPLY_OK or _ARGUMENT: no such element; or, of an exchange,
 * the block is not of the last 64 windows that gave this rank elements, and nobody could resume there.
 */
SUPPLY_API supply_status_t supply_position_after(const supply_t *supply, const supply_block_t *block, uint32_t elements,
                                                 supply_position_t *position);

/** Enough bytes for the text of any position, its terminating zero byte included. */
#define SUPPLY_POSITION_TEXT_BYTES 160

/**
 * Writes the position as printable text without blanks into a buffer of `text_bytes` bytes. SUPPLY_OK, or _ARGUMENT if
 * it does not fit (the text is then empty).
 */
SUPPLY_API supply_status_t supply_position_to_text(const supply_position_t *position, char *text, size_t text_bytes);

/** Reads the text that supply_position_to_text() has written. SUPPLY_OK, or _ARGUMENT if it is another text. */
SUPPLY_API supply_status_t supply_position_from_text(supply_position_t *position, const char *text);

#ifdef __cplusplus
}
#endif

#endif

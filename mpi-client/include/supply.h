/**
 * libsupply: what an MPI rank needs to read, in place, what Spark supplies.
 *
 *     supply_t *supply;
 *     if (supply_open(&supply, NULL) != SUPPLY_OK) die(supply_error(supply));
 *     supply_datum_t datum;
 *     supply_status_t status;
 *     while ((status = supply_next_datum(supply, &datum)) != SUPPLY_END_OF_DATA) {
 *         if (status == SUPPLY_OK) train(datum.data, datum.data_bytes, datum.label);
 *         else if (status < 0) die(supply_error(supply));
 *     }
 *     supply_close(supply);
 *
 * A rank opens its side of one pair: a mapped file and two named pipes, which it creates,
 * owns and removes. A Spark task fills blocks in the mapped file and notifies the rank; the
 * rank reads them where they lie and releases them. proto/PROTOCOL.md is the contract.
 *
 * Threads: a handle is used by one thread at a time, but its Arrow arrays (supply_arrow.h) are released by any;
 * different handles are independent. Processes: a handle belongs to the process that opened it. A child that is forked
 * and does not exec (a DataLoader's worker) has copies of its locks and pipe ends: for as long as it lives the rank
 * looks alive to Spark, even when it is dead. Fork such children before supply_open(), or let them end with their
 * parent (PR_SET_PDEATHSIG). They must call nothing on the handle. The library never prints, never exits, raises no
 * signal, and keeps no global state. Every wait ends after the time limit of the options.
 */
#ifndef SUPPLY_H
#define SUPPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SUPPLY_BUILDING) && defined(__GNUC__)
#define SUPPLY_API __attribute__((visibility("default")))
#else
#define SUPPLY_API
#endif

/** The library's own version, and the contract's that it speaks ("1.0"). */
SUPPLY_API const char *supply_version(void);
SUPPLY_API const char *supply_contract_version(void);

/** What a call came to. Not negative: no failure. Negative: supply_error() says more, where the call may change its
 * handle. */
typedef enum supply_status {
    SUPPLY_OK = 0,
    SUPPLY_END_OF_EPOCH =
        1, /**< every element of this epoch, of a stream: this batch, for this rank has been handed out */
    SUPPLY_END_OF_DATA = 2, /**< every epoch has ended, or the stream, perhaps inside of an epoch; stays so */
    SUPPLY_AGAIN = 3,       /**< nothing there yet (supply_try_next only) */

    SUPPLY_ERROR_ARGUMENT = -1,  /**< a call that this header forbids */
    SUPPLY_ERROR_CONFIG = -2,    /**< config files, options or paths missing or wrong */
    SUPPLY_ERROR_IN_USE = -3,    /**< a living process owns this pair */
    SUPPLY_ERROR_NO_SPACE = -4,  /**< the file system has no room for the mapped file */
    SUPPLY_ERROR_SYSTEM = -5,    /**< a system call failed */
    SUPPLY_ERROR_TIMEOUT = -6,   /**< the task did not come, died, or stalled for longer than the limit */
    SUPPLY_ERROR_SPARK = -7,     /**< Spark gave up; the text is its own */
    SUPPLY_ERROR_CONTRACT = -8,  /**< the task wrote what PROTOCOL.md forbids */
    SUPPLY_ERROR_MEMORY = -9,    /**< out of memory */
    SUPPLY_ERROR_ALL_HELD = -10, /**< every block of the ring is held: release one first */
} supply_status_t;

/** The name of a status, as "SUPPLY_ERROR_TIMEOUT". Never NULL. */
SUPPLY_API const char *supply_status_name(supply_status_t status);

/**
 * Where a rank stands in its data: epoch, partition, and the elements of it that it has consumed. Opaque bytes that may
 * be copied, stored and sent to another process; supply_position_to_text() makes a line of them.
 */
typedef struct supply_position {
    uint8_t bytes[32];
} supply_position_t;

/** One side of one pair. Opaque. */
typedef struct supply supply_t;

/**
 * How to open. Fill with supply_options_init() first; then 0, NULL or -1 means "not set".
 *
 * Which pair: either the two config files and a local rank (line `local_rank` of each, from 0),
 * or the three paths themselves.
 */
typedef struct supply_options {
    size_t struct_bytes; /**< set by supply_options_init() */

    /** mapped-files.conf; not set: the environment's SUPPLY_MAPPED_FILES. */
    const char *mapped_files;
    /** named-pipes.conf; not set: the environment's SUPPLY_NAMED_PIPES. */
    const char *named_pipes;
    /** Rank on this node, from 0; -1: from the launcher's environment (see supply_local_rank()). */
    int local_rank;
    /** Rank in MPI_COMM_WORLD, which the task checks against its own; -1: from the launcher's environment. */
    int rank;

    /** The pair's paths. All three or none; they win over the config files. */
    const char *mapped_file;
    const char *request_pipe;
    const char *notification_pipe;

    /** Limit of each wait in seconds; 0: the environment's SUPPLY_TIMEOUT, or 120. */
    double timeout;
    /** Bytes of the ring; 0: `ring=` of the config line, or four blocks. Rounded up to whole blocks, which must be two
     * or more. */
    size_t ring_bytes;
    /** Bytes of a block; 0: `block=` of the config line, or a quarter of the ring, or 2 MiB. Rounded up to 4 KiB. */
    size_t block_bytes;

    /**
     * Group (name or number) whose members may feed this rank, too: Spark's executors, where they run as another user.
     * NULL: `group=` of the config line, or none: this user's processes alone. The pair's files become the group's with
     * mode 0660, their folders with mode 0750. See docs/SECURITY.md.
     */
    const char *group;

    /**
     * Go on behind this position, of an earlier run of the same plan: partitions, ranks, seed, shuffle, uneven. NULL:
     * from the beginning.
     */
    const supply_position_t *position;
} supply_options_t;

/** Sets every option to "not set". */
SUPPLY_API void supply_options_init(supply_options_t *options);

/**
 * The rank's number on its node as its launcher tells it: OMPI_COMM_WORLD_LOCAL_RANK (Open MPI),
 * MPI_LOCALRANKID (MPICH's Hydra, Intel MPI) or SLURM_LOCALID (Slurm). -1 where none is set.
 * supply_mpi.h has a function that asks MPI itself.
 */
SUPPLY_API int supply_local_rank(void);

/**
 * Creates the pair and returns without waiting for Spark. The folder of each of its files must belong to this user, and
 * only this user may be able to write it (or it is sticky); missing folders are created with mode 0700. Symbolic
 * links are not followed.
 *
 * options may be NULL: everything from the environment. On failure *supply is a handle that only
 * supply_error() and supply_close() accept (NULL when there is no memory even for that).
 *
 * SUPPLY_OK, or _ARGUMENT, _CONFIG, _IN_USE, _NO_SPACE, _SYSTEM, _MEMORY.
 */
SUPPLY_API supply_status_t supply_open(supply_t **supply, const supply_options_t *options);

/**
 * Ends the pair: gives up blocks still held, removes the mapped file and the pipes, frees the handle.
 * Every pointer into the mapping is invalid afterwards, but those of Arrow arrays that are not released. Before
 * SUPPLY_END_OF_DATA Spark is told that the rank stopped early, and its run fails. After it, first waits until the task
 * knows that the rank has everything, which it does at once, unless it has just died: then its next attempt needs the
 * pair for that; at most the time limit. NULL is allowed.
 */
SUPPLY_API void supply_close(supply_t *supply);

/**
 * Tells Spark why this rank gives up (the text reaches the Supplier's message), then does what
 * supply_close() does, but without waiting. After SUPPLY_END_OF_DATA there is nothing left to give up: Spark is not
 * told.
 */
SUPPLY_API void supply_abort(supply_t *supply, const char *reason);

/**
 * What went wrong in the last call on this handle that returned a negative status: one line that names
 * the pair, the file and the setting to change. Valid until the next call. Calls that take a const handle leave it as
 * it is. NULL asks about a handle that supply_open() could not allocate. Never NULL.
 */
SUPPLY_API const char *supply_error(const supply_t *supply);

/** A block in the mapped file: the values of many elements. */
typedef struct supply_block {
    uint64_t sequence;      /**< number of the block within the run, from 0 */
    uint32_t epoch;         /**< from 0 */
    uint32_t partition;     /**< of the Spark data set, from 0 */
    uint64_t first_element; /**< index of the block's first element within its partition */
    uint32_t element_count; /**< elements, at least 1 */
    uint32_t column_count;  /**< columns */
    const void *address;    /**< of the block, 64-byte aligned */
    size_t bytes;           /**< of the block */
} supply_block_t;

/**
 * Waits for the next block, at most the time limit. The block stays valid, and its slot occupied, until
 * supply_release(). Several blocks may be held at once, but not all of the ring. The call behind SUPPLY_END_OF_EPOCH
 * says that the rank is through with that epoch: a stream does not give it again from then on, so save a position
 * before it.
 *
 * SUPPLY_OK; SUPPLY_END_OF_EPOCH (block->epoch says which; nothing to release); SUPPLY_END_OF_DATA;
 * or _TIMEOUT, _SPARK, _CONTRACT, _SYSTEM, _ALL_HELD, _ARGUMENT. After an error other than
 * _TIMEOUT, _ALL_HELD and _ARGUMENT the handle returns the same error again.
 */
SUPPLY_API supply_status_t supply_next(supply_t *supply, supply_block_t *block);

/**
 * As supply_next(), but SUPPLY_AGAIN instead of waiting. For use with supply_fd(). Calls that find nothing for longer
 * than the time limit, one after the other, come to _TIMEOUT; a poll loop that wakes up now and then has the limit,
 * too.
 */
SUPPLY_API supply_status_t supply_try_next(supply_t *supply, supply_block_t *block);

/**
 * Gives a block back to the task. Blocks may be released in any order; the task gets the space of a block
 * when all before it are released, too, and every Arrow array of it (supply_arrow.h). SUPPLY_OK, or _ARGUMENT if the
 * block is not held.
 */
SUPPLY_API supply_status_t supply_release(supply_t *supply, const supply_block_t *block);

/** Buffers of one column of one block, in Arrow's columnar layout, in place. */
typedef struct supply_column {
    const char *name;         /**< from the schema; valid as long as the handle */
    const char *format;       /**< Arrow C Data Interface format string: "i" int32, "z" bytes, "b" bit, … */
    uint32_t element_count;   /**< elements */
    uint32_t null_count;      /**< elements that are null */
    const uint8_t *validity;  /**< bit i set: element i is valid; NULL: all are */
    const int32_t *offsets;   /**< element_count + 1; NULL: fixed width. Element i is data[offsets[i] … offsets[i+1]) */
    const void *data;         /**< the values, 64-byte aligned; never NULL */
    size_t data_bytes;        /**< of data */
    const char *child_format; /**< of the numbers of a list, where format is "+w:N": N of them an element, all in data;
                                 else "" */
} supply_column_t;

/**
 * Column `index` of a held block. Nothing is copied; pointers are valid until the block is released.
 * SUPPLY_OK, or _ARGUMENT, _CONTRACT (a format that this library does not know).
 */
SUPPLY_API supply_status_t supply_column(supply_t *supply, const supply_block_t *block, size_t index,
                                         supply_column_t *column);

/** Index of the column of that name; -1 if there is none, or no task has attached yet. */
SUPPLY_API int supply_column_index(const supply_t *supply, const char *name);

/** A Datum in the mapped file: the seven values, nothing copied. */
typedef struct supply_datum {
    const void *key; /**< the LMDB key; not terminated */
    size_t key_bytes;
    int32_t label;
    int32_t channels;
    int32_t height;
    int32_t width;
    bool encoded;     /**< data is an encoded image */
    const void *data; /**< channels × height × width as stored, or an encoded image, or float32 (see PROTOCOL.md) */
    size_t data_bytes;
    uint32_t epoch; /**< epoch of the element, from 0 */
} supply_datum_t;

/**
 * The next Datum, block after block: waits and releases by itself. The pointers are valid until the next
 * call on this handle. Returns as supply_next() (at SUPPLY_END_OF_EPOCH datum->epoch says which), and
 * SUPPLY_ERROR_CONTRACT if the columns are not those of a Datum. Do not mix with supply_next() within an epoch.
 */
SUPPLY_API supply_status_t supply_next_datum(supply_t *supply, supply_datum_t *datum);

/** Datum `index` of a held block, from 0. SUPPLY_OK, or _ARGUMENT, _CONTRACT. */
SUPPLY_API supply_status_t supply_datum(supply_t *supply, const supply_block_t *block, uint32_t index,
                                        supply_datum_t *datum);

/**
 * A descriptor for poll() or select(): readable when supply_try_next() may have something. Call
 * supply_try_next() until SUPPLY_AGAIN, then poll. Only to be polled, never read or closed. Not for epoll: when a task
 * has left, the pipe is opened anew under the same number, and its registration is gone without a word.
 */
SUPPLY_API int supply_fd(const supply_t *supply);

/**
 * Where the whole mapped file lies in this process (for registering it with a device), and its length. All behind the
 * header is mapped for reading only.
 */
SUPPLY_API const void *supply_mapping(const supply_t *supply, size_t *bytes);

/** What the handle has seen so far. */
typedef struct supply_statistics {
    uint64_t elements;     /**< elements in blocks handed out */
    uint64_t blocks;       /**< blocks handed out */
    uint64_t bytes;        /**< bytes of those blocks */
    double seconds_waited; /**< time spent waiting for the task */
} supply_statistics_t;

SUPPLY_API void supply_get_statistics(const supply_t *supply, supply_statistics_t *statistics);

/**
 * Where this handle stands: everything before the position has been consumed, nothing behind it. Consumed are the
 * blocks that have been released (and all before them), or the Datums that supply_next_datum() has handed out. A rank
 * that opens its next pair with this position gets exactly what follows. SUPPLY_OK or _ARGUMENT.
 */
SUPPLY_API supply_status_t supply_position_save(const supply_t *supply, supply_position_t *position);

/**
 * The position behind the first `elements` elements of a block that supply_next() has handed out, whether it is still
 * held or not; or, of what came with SUPPLY_END_OF_EPOCH (elements: 0), behind that epoch. For programs that count
 * themselves what they have consumed, as those with mini-batches of their own size. SUPPLY_OK or _ARGUMENT.
 */
SUPPLY_API supply_status_t supply_position_after(const supply_t *supply, const supply_block_t *block,
                                                  uint32_t elements, supply_position_t *position);

/** Bytes that are enough for the text of a position, its ending zero byte included. */
#define SUPPLY_POSITION_TEXT_BYTES 96

/** Writes the position as printable text without blanks. text has SUPPLY_POSITION_TEXT_BYTES bytes. */
SUPPLY_API void supply_position_to_text(const supply_position_t *position, char *text);

/** Reads what supply_position_to_text() has written. SUPPLY_OK, or _ARGUMENT if the text is something else. */
SUPPLY_API supply_status_t supply_position_from_text(supply_position_t *position, const char *text);

/**
 * Removes what a dead rank left of a pair: those of the three files whose lock is free. A living pair is
 * left alone. options: as for supply_open(). error (may be NULL) receives the text of a failure.
 *
 * SUPPLY_OK (also when there was nothing), _IN_USE (the pair lives; untouched), _ARGUMENT, _CONFIG, _SYSTEM, _MEMORY.
 */
SUPPLY_API supply_status_t supply_remove_stale(const supply_options_t *options, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif

/**
 * Handles whose blocks come from a filler in this process, not from a Spark task: libsupply_exchange has one. The
 * program reads such a handle with the functions of supply.h: its ring is private memory, laid out as a mapped file,
 * and the filler stores into it what PROTOCOL.md asks of a task. For libraries of this project; not installed.
 */
#pragma once

#include "base/failure.h"
#include "block/schema.h"
#include "layout.h"
#include "base/position.h"
#include "base/wait.h"

/**
 * A wait for other processes has twice the time limit of the pair: they may themselves wait for Spark for once that
 * limit, and then say so.
 */
#define FILLER_LIMIT_FACTOR 2

/** Where fill() stores its block. */
struct slot {
    uint8_t *address; /**< 64-byte aligned */
    size_t bytes;
};

/** A block that fill() has stored, or the end of an epoch or of the data. */
struct filled {
    uint32_t epoch;
    uint32_t partition;
    uint64_t first_element;
    uint32_t element_count; /**< 0 at an end */
    size_t bytes;           /**< of the block; 0 at an end */
};

/** The functions of a filler. The library calls them from the thread that uses the handle, without its lock. */
struct filler {
    void *context;

    /**
     * Stores the next block after the slot's struct block_header: the struct block_column of each column, and the
     * buffers. The library fills in the block header. Waits at most the filler's own time limit; with `wait` false
     * returns SUPPLY_AGAIN instead. SUPPLY_OK, SUPPLY_END_OF_EPOCH, SUPPLY_END_OF_DATA, SUPPLY_AGAIN,
     * SUPPLY_INTERRUPTED, or a failure with its text. The library may call it
     * again after SUPPLY_ERROR_TIMEOUT and SUPPLY_ERROR_ALL_HELD.
     */
    supply_status_t (*fill)(void *context, const struct slot *slot, bool wait, struct filled *filled,
                            struct failure *failure);

    /** Calls supply__filler_set_schema() if the schema is known by now. SUPPLY_OK, or a failure with its text. */
    supply_status_t (*learn_schema)(void *context, struct failure *failure);

    /**
     * Fills in the position for a later run. The program has consumed the elements of its blocks up to this place:
     * epoch, and if it is inside the epoch, partition and element as in the blocks. SUPPLY_OK, or _ARGUMENT: the filler
     * has no position there.
     */
    supply_status_t (*position)(const void *context, const struct position *consumed, struct position *position);

    /** The handle from which the filler gets its elements: of the pair, or another one with a filler. */
    const supply_t *(*pair)(const void *context);

    /**
     * Ends the filler within `seconds`, and frees the context. reason: why the program stops early, or NULL: at the end
     * of the data. *keep is set to true if the ring's memory must stay mapped, because a pending operation uses it.
     * Returns as supply_close_within(); after SUPPLY_AGAIN and SUPPLY_INTERRUPTED it is called again.
     */
    supply_status_t (*close)(void *context, double seconds, const char *reason, bool *keep);

    /** supply_abort(): as close(), without waiting. */
    void (*abort)(void *context, const char *reason, bool *keep);

    /** In a forked child: frees the context's copy. */
    void (*abandon)(void *context);
};

/** A pair, as a filler knows it: of the handle from which it gets its elements. */
struct filler_pair {
    const struct mapped_file_header *header; /**< of the mapped file */
    const char *name;                        /**< "pair 0 (/path)" */
    int rank;                                /**< in MPI_COMM_WORLD; -1: not known */
    uint32_t readers;                        /**< that read its ring, from 1 */
    size_t slot_bytes;
    uint32_t slots;
    double timeout; /**< seconds */
    struct interruption interruption;
    struct position start; /**< at which the program opened the pair */
    bool has_failed;       /**< supply_next() returns an error again and again */
    bool has_received;     /**< blocks, or an end */
    bool accepts_exchange; /**< options.exchange */
};

/**
 * Opens a handle on a filler, which the handle takes over if the call returns SUPPLY_OK. Name, rank, time limit,
 * interrupted() and start are those of `like`. slot_bytes: of a slot, a multiple of BLOCK_BYTES_UNIT. ring: if not
 * NULL, the ring lies in memory that other processes can map by this descriptor, which is the caller's; -1: in private
 * memory, as without it. Such memory cannot be cut. Pages after RING_OFFSET are not reserved. SUPPLY_OK, or _MEMORY.
 */
SUPPLY_API supply_status_t supply__filler_open(supply_t **supply, const struct filler *filler,
                                               const struct filler_pair *like, size_t slot_bytes, uint32_t slots,
                                               int *ring, struct failure *failure);

/** Memory without a name, which nobody can cut; its first RING_OFFSET bytes are reserved. -1: there is none, or ulimit
 * -f would end who asks for it. */
SUPPLY_API int supply__filler_memory(size_t bytes);

/** Reserves pages of memory that others can map, also if signals interrupt it. SUPPLY_OK, or _NO_SPACE, _MEMORY. */
SUPPLY_API supply_status_t supply__filler_reserve(int fd, size_t begin, size_t bytes, struct failure *failure);

/** The header of the ring, in which the filler stores what a task stores in that of a mapped file. */
SUPPLY_API struct mapped_file_header *supply__filler_header(supply_t *supply);

/** Whether the call before returned SUPPLY_AGAIN, and the program has waited since then. */
SUPPLY_API bool supply__filler_is_waiting(const supply_t *supply);

/** The statistics of an exchange, which its filler counts. */
SUPPLY_API supply_exchange_statistics_t *supply__filler_statistics(supply_t *supply);

/** The slot of the block with that number, counted from 0 with the ends. False: it is not free yet. For any thread. */
SUPPLY_API bool supply__filler_slot_of(supply_t *supply, uint64_t sequence, struct slot *slot);

/**
 * Stores the entries and texts of the schema as a task does, once. They are those of the pair, with "vz" as "z".
 * SUPPLY_OK, or _MEMORY.
 */
SUPPLY_API supply_status_t supply__filler_set_schema(supply_t *supply, const struct schema *schema,
                                                     struct failure *failure);

/** SUPPLY_OK or _ARGUMENT (no open handle of this process). */
SUPPLY_API supply_status_t supply__filler_inspect(const supply_t *pair, struct filler_pair *inspected);

/**
 * The schema by which the handle checks its blocks: the handle's own, valid until it is closed. NULL: it is not known
 * yet. SUPPLY_OK, or _CONTRACT, _MEMORY.
 */
SUPPLY_API supply_status_t supply__filler_schema(supply_t *supply, const struct schema **schema,
                                                 struct failure *failure);

/** Whether Spark's run still lives, without receiving anything. SUPPLY_OK, or a failure, which later calls return, too.
 */
SUPPLY_API supply_status_t supply__filler_check_running(supply_t *supply);

/** In a forked child, if a thread of the parent used the handle of the pair: closes its descriptors, and frees nothing
 * that the thread changes. The handle is lost. */
SUPPLY_API void supply__filler_abandon(supply_t *pair);

/** From now on a filler reads the pair: supply_next() on it works, although the program must exchange its elements. */
SUPPLY_API void supply__filler_claim(supply_t *pair);

/** The pair fails: supply_error() returns this text, and supply_next() this failure, or _ARGUMENT after an
 * interruption. */
SUPPLY_API void supply__filler_fail(supply_t *pair, const struct failure *failure);

/* For the Python package, which has the static library. */

/**
 * The program computes until its next call, so the time until then is no wait: neither for the time limit, nor in the
 * statistics. Call it after a SUPPLY_AGAIN of supply_try_next(). Without it all time between two SUPPLY_AGAIN counts.
 */
void supply__pause_wait(supply_t *supply);

/** Of a rank elsewhere that will write results: its task stays until they are kept. Otherwise nothing happens. */
void supply__hold_end(supply_t *supply);

/** A rank elsewhere fails with that text, as if Spark had: no more will come. Otherwise nothing happens. */
void supply__fail_link(supply_t *supply, const char *text);

/** The time limit of each wait in seconds; 0: not open. */
double supply__timeout(const supply_t *supply);

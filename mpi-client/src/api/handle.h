/**
 * The handle: supply_t. One thread at a time uses it; but any thread may release Arrow arrays of its blocks, so a lock
 * covers what they change. Functions say which lock they need.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "block/block.h"
#include "api/filler.h"
#include "block/foreign_files.h"
#include "pair/pair.h"
#include "files/options.h"
#include "supply.h"

struct exports {
    pthread_mutex_t lock; /**< of the pair's `held`, `exported`, `expected`, `released` */
    uint32_t references;  /**< one of the handle, and one of each export; dropping the last unmaps the files */
    supply_t *supply;     /**< NULL: it has been closed */
    pid_t process;        /**< the opener, for messages */
    bool *is_mine;        /**< base/opener.h: a forked child must not release its parent's blocks */
    struct exported_mappings mappings; /**< empty until the handle is closed */
};

/** NULL: no memory. */
struct exports *supply__exports_new(supply_t *supply);

/** Adds and drops a reference. */
void supply__exports_add(struct exports *exports);
void supply__exports_drop(struct exports *exports);

/** The last structure of an export of that block is released. */
void supply__exports_remove(struct exports *exports, uint64_t sequence);

/** The handle is being closed: from now on only its own thread changes it. */
void supply__exports_detach(struct exports *exports);

/** The handle leaves its mappings to the exports that are not released; without any, they are unmapped. */
void supply__exports_leave(struct exports *exports, const struct exported_mappings *mappings);

enum { DATUM_COLUMNS = 7 };

struct supply {
    bool is_open;
    bool is_filled; /**< by the filler; false: by a task */
    struct filler filler;
    bool claimed;   /**< a filler reads this pair */
    bool keep_ring; /**< a pending operation of the filler uses the ring's memory */
    bool at_end_of_data;
    bool at_end_of_epoch;     /**< the last call to receive returned SUPPLY_END_OF_EPOCH */
    uint32_t epoch;           /**< of the last block received */
    struct position consumed; /**< after everything that has been released */
    struct pair pair;
    struct blocks blocks;
    struct exports *exports;
    supply_status_t received; /**< what the last call to receive returned */
    struct failure failure;   /**< of the last call that failed */
    struct failure broken;    /**< status not SUPPLY_OK: why nothing can be received any more */

    int64_t last_wait;   /**< nanoseconds of the last wait of supply_next() */
    int64_t quiet_since; /**< time of the first SUPPLY_AGAIN in a row; 0: the last call returned something else */

    /** Of the last check of the task: when, what it found, and when a check last found that a task came or left. */
    int64_t watched_at;
    uint32_t attachments;
    bool task_is_attached;
    int64_t task_changed_at; /**< 0: none has */

    /** supply_next_datum(): its block, and the next Datum in it. */
    bool iterating;
    supply_block_t iterated;
    uint32_t next_datum;
    uint64_t datum_block; /**< number, plus 1, of the block whose columns these are; 0: none */
    supply_column_t datum_columns[DATUM_COLUMNS];

    supply_statistics_t statistics;
};

/** supply_open() with these settings; the handle takes them over. */
supply_status_t supply__open_settings(supply_t *supply, struct settings *settings);

/** In a forked child nobody takes the lock: a thread that does not exist there may hold it. */
void supply__lock(const supply_t *supply);
void supply__unlock(const supply_t *supply);

/** SUPPLY_OK; _ARGUMENT: there is no handle; or why it could not be opened, which stays its failure. */
supply_status_t supply__check_open(const supply_t *supply);

/** The same; or _ARGUMENT, with its text: this is a forked child of the process that opened it. For calls that change
 * the pair. */
supply_status_t supply__check_mine(supply_t *supply, const char *call);

/**
 * SUPPLY_OK if the program holds the block. Or _ARGUMENT, with the call in its text. are_given: no other argument is
 * NULL.
 */
supply_status_t supply__check_held(supply_t *supply, const char *call, const supply_block_t *block, bool are_given);

/** Releases a held block (C1, C2) and advances the position. */
void supply__release_block(supply_t *supply, uint64_t sequence);

/** The schema is known, from here on in supply->blocks. SUPPLY_OK, or _NO_SCHEMA, _CONTRACT, _MEMORY. */
supply_status_t supply__schema_learn(supply_t *supply);

/** Learns the schema, and checks that there is such a column. SUPPLY_OK, or the same, or _NO_COLUMN. */
supply_status_t supply__schema_check_index(supply_t *supply, int index);
/** The entry of a child of an entry. SUPPLY_OK, _NO_COLUMN, or as supply_column_count(). */
supply_status_t supply__schema_check_child(supply_t *supply, uint32_t entry, int child, uint32_t *found);

/** Fails because offsets or views of a held block changed. SUPPLY_ERROR_CONTRACT. */
supply_status_t supply__fail_by_changed_block(supply_t *supply);

/** From now on an Arrow array holds the block, too. */
void supply__begin_export(supply_t *supply, uint64_t sequence);

/** R2 to R4 for one notification. Returns as supply_try_next(). SUPPLY_AGAIN: it is dropped. */
supply_status_t supply__take(supply_t *supply, const struct notification *notification, supply_block_t *block);

/** Fails because every slot is held. SUPPLY_AGAIN: one is not. advice: what else the user can do. */
supply_status_t supply__check_credit(supply_t *supply, const char *advice);

/** The pair from which the elements of a handle come; NULL: another process has opened it. */
const struct pair *supply__filler_pair(const supply_t *supply);

/** supply__receive() of a handle with a filler. */
supply_status_t supply__filler_receive(supply_t *supply, supply_block_t *block, bool wait);

/** After an error that lasts, each call returns it. */
supply_status_t supply__check_unbroken(supply_t *supply);

/** R1 to R4: the next block. Returns as supply_next(); without `wait` as supply_try_next(). */
supply_status_t supply__receive(supply_t *supply, supply_block_t *block, bool wait);

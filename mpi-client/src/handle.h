/** What a supply_t is. */
#ifndef SUPPLY_HANDLE_H
#define SUPPLY_HANDLE_H

#include "block.h"
#include "exports.h"
#include "pair.h"

/** Where the seven columns of the iterator's block lie. */
struct datum_columns {
    supply_column_t column[DATUM_COLUMNS];
};

struct supply {
    bool is_open;
    bool at_end_of_data;
    bool at_end_of_epoch;     /**< END_OF_EPOCH is what was handed out last */
    uint32_t epoch;           /**< of the last block received */
    struct position consumed; /**< behind all that has been released */
    struct pair pair;
    struct blocks blocks;
    struct exports *exports;
    struct failure failure; /**< of the last call that failed */
    struct failure broken;  /**< status not SUPPLY_OK: nothing can be received any more, and why */

    int64_t last_wait;    /**< how long supply_next() waited the last time it had to, in nanoseconds */
    int64_t quiet_since;  /**< when supply_try_next() first found nothing; 0: it has not */
    int64_t task_left_at; /**< when a task was last seen to leave; 0: none was */

    /** supply_next_datum(): its block, and the next Datum in it. */
    bool iterating;
    supply_block_t iterated;
    uint32_t next_datum;
    struct datum_columns datum_columns;

    supply_statistics_t statistics;
};

/** supply_open() with settings that are known already; they become the handle's. */
supply_status_t supply_open_settings(supply_t *supply, struct settings *settings);

static inline void supply_lock(const supply_t *supply) { pthread_mutex_lock(&supply->exports->lock); }
static inline void supply_unlock(const supply_t *supply) { pthread_mutex_unlock(&supply->exports->lock); }

/** True if the program holds that block. */
bool supply_holds(const supply_t *supply, uint64_t sequence);

/** Releases a held block (C1, C2), and notes what has been consumed by it. */
void supply_give_back(supply_t *supply, uint64_t sequence);

/** An Arrow array holds the block, too, from here on. */
void supply_begin_export(supply_t *supply, uint64_t sequence);

/** Such an array is released: as supply_give_back(). The caller has the lock. */
void supply_end_export(supply_t *supply, uint64_t sequence);

/** R1 to R4: the next block; wait: until the time limit, else SUPPLY_AGAIN. Returns as supply_next(). */
supply_status_t supply_receive(supply_t *supply, supply_block_t *block, bool wait);

#endif

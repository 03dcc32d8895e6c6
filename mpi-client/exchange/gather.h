/** Gathers the windows of a rank from the blocks of its pair. */
#pragma once

#include "api/filler.h"
#include "window.h"

struct gather {
    supply_t *pair;
    const struct filler_pair *inspected;
    struct columns *columns;
    size_t window_bytes;
    struct held_block *open;   /**< in which the next window begins; NULL: with the next block */
    uint32_t next_row;         /**< of it */
    struct held_block *oldest; /**< held blocks, linked by `next` */
    struct held_block *newest;
    struct piece *returned; /**< what the ranks have left out of the window before: it comes first in the next one */
    uint32_t returned_count;
    uint32_t returned_capacity;
    enum window_end ended; /**< what the pair has returned last */
    uint32_t ended_epoch;  /**< of WINDOW_ENDS_EPOCH */
    /** Of the pair, after all gathered elements. Until all ranks have ended the epoch, it is a position in it. */
    struct position position;
};

/** Begins a window that is empty. */
void exchange_gather_begin(const struct gather *gather, struct gathered_window *window);

/**
 * Adds elements until the window is full, or the epoch or the data has ended: then window->is_complete. SUPPLY_OK;
 * SUPPLY_AGAIN: the pair has no block yet; or a failure, after which the call may be repeated if it is _TIMEOUT.
 */
supply_status_t exchange_gather(struct gather *gather, struct gathered_window *window, struct failure *failure);

/** Leaves the last `count` elements out of a complete window: they come first in the next one. */
void exchange_gather_return(struct gather *gather, struct gathered_window *window, uint32_t count);

/** The program has asked for what follows the end of the epoch: from now on the pair may be asked, too. */
void exchange_gather_next_epoch(struct gather *gather);

/** Drops the elements of the window. Blocks without users are released. */
void exchange_gather_drop(struct gather *gather, struct gathered_window *window);

/** Frees the held blocks. The pair may be closed already. */
void exchange_gather_free(struct gather *gather);

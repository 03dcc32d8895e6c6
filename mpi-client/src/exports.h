/**
 * What a handle shares with the Arrow arrays that it has exported: these are released by any thread, and some of them
 * only after the handle is closed.
 */
#ifndef SUPPLY_EXPORTS_H
#define SUPPLY_EXPORTS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supply.h"

struct exports {
    pthread_mutex_t
        lock; /**< of which blocks are held, and by whom: the pair's `held`, `exported`, `expected`, `released` */
    uint32_t references; /**< the handle's, and one of each export; whoever drops the last unmaps the file */
    supply_t *supply;    /**< NULL: it has been closed */
    pid_t process;       /**< a forked child has copies of the arrays, and must not release the blocks of its parent */
    uint8_t *address;    /**< the mapping, once the handle is closed */
    size_t bytes;
};

/** NULL: no memory. */
struct exports *supply_exports_new(supply_t *supply);

/** One more export. */
void supply_exports_add(struct exports *exports);

/** An export of that block is released for good. */
void supply_exports_remove(struct exports *exports, uint64_t sequence);

/** The handle is about to be closed: from here on no thread but its own changes anything in it. */
void supply_exports_detach(struct exports *exports);

/** The handle goes, and leaves the mapping to the exports that are still out. Frees all where none is. NULL is allowed.
 */
void supply_exports_leave(struct exports *exports, uint8_t *address, size_t bytes);

#endif

/** State that a handle shares with its Arrow arrays: any thread releases these, some only after supply_close(). */
#ifndef SUPPLY_EXPORTS_H
#define SUPPLY_EXPORTS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "layout.h"
#include "supply.h"

/** Mappings that outlive the handle: of the mapped file, and of the foreign files. */
struct exported_mappings {
    struct {
        void *address;
        size_t bytes;
    } list[1 + FOREIGN_FILES_MAX];
    uint32_t count;
};

struct exports {
    pthread_mutex_t lock; /**< of the pair's `held`, `exported`, `expected`, `released` */
    uint32_t references;  /**< one of the handle, and one of each export; dropping the last unmaps the files */
    supply_t *supply;     /**< NULL: it has been closed */
    pid_t process;        /**< the opener: a forked child must not release the blocks of its parent */
    struct exported_mappings mappings; /**< empty until the handle is closed */
};

/** NULL: no memory. */
struct exports *supply_exports_new(supply_t *supply);

/** True in the process that opened the handle. */
bool supply_exports_are_mine(const struct exports *exports);

/** Adds and drops a reference. */
void supply_exports_add(struct exports *exports);
void supply_exports_drop(struct exports *exports);

/** The last structure of an export of that block is released. */
void supply_exports_remove(struct exports *exports, uint64_t sequence);

/** The handle is being closed: from now on only its own thread changes it. */
void supply_exports_detach(struct exports *exports);

/** The handle leaves its mappings to the exports that are not released; without any, they are unmapped. */
void supply_exports_leave(struct exports *exports, const struct exported_mappings *mappings);

#endif

#include "exports.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handle.h"

struct exports *supply_exports_new(supply_t *supply) {
    struct exports *exports = calloc(1, sizeof *exports);
    if (exports == NULL) return NULL;
    pthread_mutex_init(&exports->lock, NULL);
    exports->references = 1;
    exports->supply = supply;
    exports->process = getpid();
    return exports;
}

bool supply_exports_are_mine(const struct exports *exports) { return getpid() == exports->process; }

void supply_exports_add(struct exports *exports) { __atomic_add_fetch(&exports->references, 1, __ATOMIC_RELAXED); }

void supply_exports_drop(struct exports *exports) {
    if (__atomic_sub_fetch(&exports->references, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (uint32_t i = 0; i < exports->mappings.count; i++)
        munmap(exports->mappings.list[i].address, exports->mappings.list[i].bytes);
    pthread_mutex_destroy(&exports->lock);
    free(exports);
}

void supply_exports_remove(struct exports *exports, uint64_t sequence) {
    /* In a forked child the lock may be held by a thread that does not exist there. */
    if (!supply_exports_are_mine(exports)) return;
    pthread_mutex_lock(&exports->lock);
    if (exports->supply != NULL) supply_end_export(exports->supply, sequence);
    pthread_mutex_unlock(&exports->lock);
    supply_exports_drop(exports);
}

void supply_exports_detach(struct exports *exports) {
    pthread_mutex_lock(&exports->lock);
    exports->supply = NULL;
    pthread_mutex_unlock(&exports->lock);
}

void supply_exports_leave(struct exports *exports, const struct exported_mappings *mappings) {
    exports->mappings = *mappings;
    supply_exports_drop(exports);
}

/** The memory of one call of a routine beside its results. */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include <stddef.h>

#include "supply_routine.h"

#define WORKSPACE_BLOCKS_MAX 64

struct workspace {
    supply_call_t *call;
    void *blocks[WORKSPACE_BLOCKS_MAX];
    size_t count;
    size_t bytes;
    size_t checked_bytes; /**< of them, when workspace_check() was called last */
    bool failed;
};

/** `count` values, 0 each, that live until workspace_free(). NULL: no memory, and workspace_check() will fail. */
double *workspace_add(struct workspace *workspace, size_t count);

/**
 * 0 if all ranks got what they have added since the last check, and their nodes have that much memory. Otherwise the
 * call has failed, alike on all ranks. Collective.
 */
int workspace_check(struct workspace *workspace);

void workspace_free(struct workspace *workspace);

#endif

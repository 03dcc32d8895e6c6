/** A sorted run of elements, in blocks, in a file without a name: it goes with the process. */
#ifndef SUPPLY_EXCHANGE_SORT_RUN_H
#define SUPPLY_EXCHANGE_SORT_RUN_H

#include "window.h"

struct run_block {
    size_t offset; /**< in the file */
    size_t bytes;
    uint32_t elements;
};

struct sort_run {
    int fd;
    size_t bytes;
    uint8_t *mapping; /**< of the whole file; NULL: not mapped */
    struct run_block *blocks;
    uint32_t block_count;
};

/** Creates the file in the folder. SUPPLY_OK, or _SYSTEM. Close it in any case. */
supply_status_t exchange_run_create(struct sort_run *run, const char *folder, struct failure *failure);

/** Appends a block of exchange_slot_finish(). SUPPLY_OK, or _NO_SPACE, _SYSTEM, _MEMORY. */
supply_status_t exchange_run_append(struct sort_run *run, const uint8_t *block, size_t bytes, uint32_t elements,
                                    const char *folder, struct failure *failure);

/** Maps the file, and adds its elements to the window. SUPPLY_OK, or _SYSTEM, _MEMORY. */
supply_status_t exchange_run_load(struct sort_run *run, const struct columns *columns, struct gathered_window *window,
                                  struct failure *failure);

/** Unmaps and removes the file. */
void exchange_run_close(struct sort_run *run);

#endif

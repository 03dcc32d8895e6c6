/** Sorted runs of elements, in blocks, in one file without a name: it goes with the process. */
#ifndef SUPPLY_EXCHANGE_SORT_RUN_H
#define SUPPLY_EXCHANGE_SORT_RUN_H

#include "window.h"

struct run_block {
    size_t offset; /**< in the file */
    size_t bytes;
    uint32_t elements;
    uint32_t run; /**< number of the run, from 0 */
};

struct sort_runs {
    bool is_open;
    int fd;
    size_t bytes;
    uint8_t *mapping; /**< of the whole file; NULL: not mapped */
    struct run_block *blocks;
    uint32_t block_count;
    uint32_t count; /**< runs */
};

/** Begins a run; the first one creates the file in the folder. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_runs_begin(struct sort_runs *runs, const char *folder, struct failure *failure);

/** Appends a block of exchange_slot_finish() to the last run. SUPPLY_OK, or _NO_SPACE, _SYSTEM, _MEMORY. */
supply_status_t exchange_runs_append(struct sort_runs *runs, const uint8_t *block, size_t bytes, uint32_t elements,
                                     const char *folder, struct failure *failure);

/** Maps the file, and adds the elements of all runs to the window, run after run. SUPPLY_OK, or _SYSTEM, _MEMORY. */
supply_status_t exchange_runs_load(struct sort_runs *runs, const struct columns *columns,
                                   struct gathered_window *window, struct failure *failure);

/** Unmaps and removes the file. */
void exchange_runs_close(struct sort_runs *runs);

#endif

/** The step in which all ranks tell each other their state, and fail together if one has failed or they differ. */
#pragma once

#include "collective.h"

/** What one rank tells the others. */
struct rank_state {
    int32_t status; /**< SUPPLY_OK; SUPPLY_AGAIN: its window is not complete yet; or why it failed */
    int32_t error;  /**< errno of SUPPLY_ERROR_SYSTEM */
    uint32_t epoch; /**< EPOCH_UNKNOWN: it has neither elements nor an end of an epoch */
    uint32_t window;
    uint32_t end; /**< enum window_end */
    uint32_t columns;
    uint32_t text_bytes; /**< of the columns */
    uint32_t space;      /**< bytes of elements for which its memory is reserved */
    uint32_t steps;      /**< fingerprint of what all ranks have passed alike; 0: nothing yet */
    uint32_t unused;     /**< 0 */
    uint64_t elements;   /**< of the window */
    uint64_t settings;   /**< fingerprint; 0: not known yet */
    uint64_t schema;     /**< fingerprint; 0: not known yet */
};

/** On what the ranks do not agree. */
enum difference { AGREED, FAILED, SETTINGS_DIFFER, COLUMNS_DIFFER, WINDOWS_DIFFER, STEPS_DIFFER };

/** What a rank says of itself if the ranks do not agree. */
#define AGREE_TEXT_BYTES 1024

/** Writes this, with AGREE_TEXT_BYTES at most: why the rank failed, or its settings or columns. */
typedef void exchange_describe(const void *context, enum difference difference, char *text);

struct agree {
    uint32_t rank;
    uint32_t ranks;
    struct rank_state mine;
    struct rank_state *all; /**< of each rank, after the step */
    char *texts;            /**< of each rank */
    char *text;
    bool is_explaining;
};

supply_status_t exchange_agree_init(struct agree *agree, uint32_t rank, uint32_t ranks, struct failure *failure);
void exchange_agree_free(struct agree *agree);

/** Begins the step with agree->mine. SUPPLY_OK, or _SYSTEM. */
supply_status_t exchange_agree_begin(struct agree *agree, struct collective *collective, struct failure *failure);

/**
 * SUPPLY_OK: agree->all has the states, all fit together. SUPPLY_AGAIN: not yet. Else a failure: on all ranks the same,
 * unless it is one of the transport. describe() is called only if the ranks do not agree.
 */
supply_status_t exchange_agree_poll(struct agree *agree, struct collective *collective, exchange_describe *describe,
                                    const void *context, struct failure *failure);

/** The rank's side of a pair: opening (O1 to O4), credits (C1, C2), stopping. */
#ifndef SUPPLY_PAIR_H
#define SUPPLY_PAIR_H

#include "mapped_file.h"
#include "named_pipe.h"

struct pair {
    struct settings settings;
    struct mapped_file mapped_file;
    struct claimed_file request_pipe;
    struct claimed_file notification_pipe;
    char *name;         /**< "pair 0 (/path)", for messages */
    bool *held;         /**< per slot: its block has been received and not released */
    uint32_t *exported; /**< per slot: Arrow arrays of its block that are not released */
    uint64_t expected;  /**< sequence number of the next block; all below are received */
    uint64_t released;  /**< all below are released */
};

/**
 * Opens a pair; settings become the pair's own, and the caller's are empty afterwards. On failure nothing is left
 * behind. SUPPLY_OK, or _IN_USE, _CONFIG, _NO_SPACE, _SYSTEM, _MEMORY.
 */
supply_status_t supply_pair_open(struct pair *pair, struct settings *settings, struct failure *failure);

/** Removes the three files and frees everything. Also for a pair that could not be opened. */
void supply_pair_close(struct pair *pair);

/** True if that block has been received and is not released. */
bool supply_pair_holds(const struct pair *pair, uint64_t sequence);

/** True if the task has no credit: nothing can come before a release. */
bool supply_pair_is_full(const struct pair *pair);

/** Takes the expected block in. */
void supply_pair_receive(struct pair *pair);

/** Releases a held block: C1 and C2, as far as nobody holds it, or one before it. */
void supply_pair_release(struct pair *pair, uint64_t sequence);

/** An Arrow array holds the block, too, from here on; no longer: C1 and C2 as above. */
void supply_pair_begin_export(struct pair *pair, uint64_t sequence);
void supply_pair_end_export(struct pair *pair, uint64_t sequence);

/** Releases every block that has been received, also those that are exported. */
void supply_pair_release_all(struct pair *pair);

/** C3: the program asks for what follows the END_OF_EPOCH that it has received last. */
void supply_pair_pass(struct pair *pair);

/** E4, behind END_OF_DATA: releases everything, and waits until the task knows it or Spark gives up, at most the time
 * limit. */
void supply_pair_end(struct pair *pair);

/** Writes why the rank gives up, and STOP. */
void supply_pair_stop(struct pair *pair, const char *reason);

#endif

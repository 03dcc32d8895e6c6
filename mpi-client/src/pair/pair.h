/** The rank's side of a pair: opening (O1 to O4), credits (C1 to C3), the end (E4), stopping. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "files/claimed_file.h"
#include "pair/link.h"
#include "pair/mapped_file.h"

struct pair {
    struct settings settings;
    struct mapped_file mapped_file;
    struct claimed_file request_pipe;
    struct claimed_file notification_pipe;
    struct link *link;  /**< of a rank elsewhere; or NULL */
    char *name;         /**< "pair 0 (/path)", for messages */
    bool *held;         /**< for each slot: its block has been received and not released */
    uint32_t *exported; /**< for each slot: Arrow arrays of its block that are not released */
    uint64_t expected;  /**< sequence number of the next block; all below are received */
    uint64_t released;  /**< all below are released */
    uint64_t credited;  /**< the `released` of the header, which the task could change; stored with release */
    int64_t end_limit;  /**< until when supply__pair_await_end() waits (supply__clock_now); 0: not called yet */
};

/**
 * Opens a pair and takes over the settings; the caller's are empty afterwards. On failure nothing is left. SUPPLY_OK,
 * or _IN_USE, _CONFIG, _NO_SPACE, _SYSTEM, _MEMORY.
 */
supply_status_t supply__pair_open(struct pair *pair, struct settings *settings, struct failure *failure);

/** Where the slot of a number begins in the mapped file. */
static inline uint64_t supply__ring_slot_offset(const struct settings *settings, uint64_t sequence) {
    return RING_OFFSET + sequence % settings->block_count * settings->block_bytes;
}

/** Removes the files and frees everything, even if the pair was not opened. False and errno: a file is still there. */
bool supply__pair_close(struct pair *pair);

/** Closes the descriptors and frees everything. The files and the mapping stay. */
void supply__pair_abandon(struct pair *pair);

/** True if that block has been received and is not released. */
bool supply__pair_holds(const struct pair *pair, uint64_t sequence);

/** True if the task has no credit: it can publish nothing before a release. */
bool supply__pair_is_full(const struct pair *pair);

/** Notes that the expected block has been received. */
void supply__pair_receive(struct pair *pair);

/** Ends that the program holds a block: `released` passes every block that nothing holds, and none before it. */
void supply__pair_unhold(struct pair *pair, uint64_t sequence);

/** Begins and ends that an Arrow array holds the block, too. `released` as above. */
void supply__pair_begin_export(struct pair *pair, uint64_t sequence);
void supply__pair_end_export(struct pair *pair, uint64_t sequence);

/** C1 and C2: the task may fill the slots of released blocks. */
void supply__pair_publish_released(struct pair *pair);

/** Releases every received block, also those that are exported. */
void supply__pair_release_all(struct pair *pair);

/** C3: the program asks for what follows the END_OF_EPOCH that it has just received. */
void supply__pair_acknowledge(struct pair *pair);

/**
 * E4, after END_OF_DATA: releases everything, and waits until the task has confirmed it. SUPPLY_OK; SUPPLY_AGAIN after
 * `seconds`; SUPPLY_INTERRUPTED; _TIMEOUT; _SPARK (the run failed); _SYSTEM (errno); _CONTRACT.
 */
supply_status_t supply__pair_await_end(struct pair *pair, double seconds);

/** SUPPLY_ERROR_SPARK, with the text that Spark has stored. */
supply_status_t supply__pair_fail_by_spark(const struct pair *pair, struct failure *failure);

/**
 * Whether Spark's run still lives, as far as the pair says it. Reads nothing from the pipe. SUPPLY_OK, or _SPARK, or as
 * supply__mapped_file_check_whole().
 */
supply_status_t supply__pair_check_running(const struct pair *pair, struct failure *failure);

/** Writes why the rank fails, and sends STOP. */
void supply__pair_stop(struct pair *pair, const char *reason);

/* The rank's ends of the two named pipes: records of fixed size. Nothing here blocks. */

/** Result of reading a record. */
enum pipe_read {
    PIPE_RECORD,
    PIPE_EMPTY,
    PIPE_FAILED,
};

/** Reads one record from a claimed pipe. */
enum pipe_read supply__pipe_read(struct claimed_file *pipe, void *record, size_t bytes, struct failure *failure);

/**
 * The rank's side of feeders: its state of each pair, and what a handle whose pairs are opened by feeders has between
 * the calls of the program.
 */
#pragma once

#include "block/schema.h"
#include "messages.h"
#include "processes.h"

struct source {
    const struct transport *transport;
    uint32_t pair;
    int feeder;       /**< number of the process */
    const char *node; /**< of the feeder */
    int tag;          /**< the pair's first one */

    struct request_message request; /**< the last one, or the one to be sent next */
    bool has_request;               /**< it is not sent yet */
    int sending;                    /**< operation that sends it */
    struct request_message sent;

    struct notice_message *notice; /**< with space for the largest tail */
    int receiving;                 /**< operation that receives it */
    bool has_notice;               /**< it has arrived, and source_next() was not called yet */

    bool has_ended;      /**< its epoch, or its data */
    bool has_ended_data; /**< for good */
    bool is_closed;      /**< CLOSED has arrived */
    void *dropped;       /**< memory for a block that nobody wants any more */
    int dropping;        /**< operation that receives it */
};

/** SUPPLY_OK, or _MEMORY. Free with source_free() in any case. */
supply_status_t source_init(struct source *source, const struct transport *transport, const struct processes *processes,
                            uint32_t pair, struct failure *failure);

void source_free(struct source *source);

/** Sends source->request as soon as the last one is sent. */
void source_ask(struct source *source, enum request_kind kind);

/** Sends and receives what it can. source->has_notice says whether there is one. SUPPLY_OK, or a failure. */
supply_status_t source_advance(struct source *source, struct failure *failure);

/** The notice has been used: source_advance() for the next one, unless it was the last. SUPPLY_OK, or a failure. */
supply_status_t source_next(struct source *source, struct failure *failure);

/** Drops the notice, and its block. SUPPLY_OK; SUPPLY_AGAIN: its block is on its way; or a failure. */
supply_status_t source_drop(struct source *source, size_t block_bytes, struct failure *failure);

/** True if operations of the transport may still use the source's memory. */
bool source_is_pending(const struct source *source);

/** The failure of the notice, with the feeder's node. Returns its status. */
supply_status_t source_failure(const struct source *source, struct failure *failure);

/** A block that is received into a slot of the ring, or an end that takes its turn among the blocks. */
struct arrival {
    supply_status_t status; /**< SUPPLY_OK, _END_OF_EPOCH or _END_OF_DATA */
    struct filled filled;
    int receiving; /**< operation */
    const struct source *source;
};

struct remote {
    struct remote *next_kept; /**< a context that is never freed, either */
    struct transport transport;
    struct processes processes;
    supply_t *handle;
    char name[512];
    double timeout;
    struct interruption interruption;

    struct source *sources; /**< of the pairs */
    uint32_t source_count;
    uint32_t turn; /**< the source of the next block, if it has one */
    size_t slot_bytes;

    struct arrival *arrivals; /**< a queue: the first one is the next that the program gets */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;

    bool at_end_of_epoch; /**< the program got an end, and has not asked for the next epoch */
    bool at_end_of_data;
    struct failure failed;   /**< status not SUPPLY_OK: the failure that comes after the arrivals */
    struct failure reported; /**< status _TIMEOUT: Spark is slow, and nothing has arrived since */
    int64_t waits_since;     /**< when the program began to wait; 0: it does not */
    int64_t polled;          /**< when the program last let data move */
    bool is_closing;
    bool has_no_link;             /**< after remote_end() */
    int64_t close_end;            /**< until when closing waits */
    supply_status_t close_status; /**< the first failure of closing a pair */
};

/** The arrival at that place of the queue. */
static inline struct arrival *remote_arrival(const struct remote *remote, uint32_t index) {
    return &remote->arrivals[(remote->first + index) % remote->capacity];
}

/** Sends, receives, and queues what arrives. SUPPLY_OK, or a failure. */
supply_status_t remote_advance(struct remote *remote, struct failure *failure);

/** SUPPLY_OK: everything that is queued has arrived. SUPPLY_AGAIN, or a failure. */
supply_status_t remote_test_arrivals(struct remote *remote, struct failure *failure);

/** Takes the first arrival. SUPPLY_AGAIN: it has not arrived yet. Otherwise as fill(). */
supply_status_t remote_take(struct remote *remote, struct filled *filled, struct failure *failure);

/** The source of the next notice: with an exchange always in turn. NULL: all have ended. */
struct source *remote_next_source(const struct remote *remote);

/** Asks the pairs that have ended an epoch, but not the data, for what follows it. */
void remote_ask_for_epoch(struct remote *remote);

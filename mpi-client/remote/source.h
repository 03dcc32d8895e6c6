/** The rank's state of one pair. */
#ifndef SUPPLY_SOURCE_H
#define SUPPLY_SOURCE_H

#include "messages.h"
#include "processes.h"

struct source {
    const struct link *link;
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
supply_status_t source_init(struct source *source, const struct link *link, const struct processes *processes,
                            uint32_t pair, struct failure *failure);

void source_free(struct source *source);

/** Sends source->request as soon as the last one is sent. */
void source_ask(struct source *source, enum request_kind kind);

/** Sends and receives what it can. source->has_notice says whether there is one. SUPPLY_OK, or a failure. */
supply_status_t source_advance(struct source *source, struct failure *failure);

/** The notice has been used: source_advance() for the next one, unless it was the last. SUPPLY_OK, or a failure. */
supply_status_t source_next(struct source *source, struct failure *failure);

/** Begins to receive the block of the notice. SUPPLY_OK, or a failure: _CONTRACT if the memory is too small. */
supply_status_t source_receive_block(struct source *source, const struct slot *slot, int *operation,
                                     struct failure *failure);

/** Drops the notice, and its block. SUPPLY_OK; SUPPLY_AGAIN: its block is on its way; or a failure. */
supply_status_t source_drop(struct source *source, size_t block_bytes, struct failure *failure);

/** True if operations of the link may still use the source's memory. */
bool source_is_pending(const struct source *source);

/** The failure of the notice, with the feeder's node. Returns its status. */
supply_status_t source_failure(const struct source *source, struct failure *failure);

#endif

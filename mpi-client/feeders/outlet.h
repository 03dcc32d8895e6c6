/** The feeder's state of one pair. */
#ifndef SUPPLY_OUTLET_H
#define SUPPLY_OUTLET_H

#include "messages.h"
#include "processes.h"

/** A notice on its way to the rank, and its block. */
struct sending {
    struct sending *next;
    int notice_operation;
    int block_operation;
    supply_block_t block;         /**< held until it is sent; element_count is 0 if there is none */
    struct notice_message notice; /**< with its tail */
};

enum outlet_state {
    OUTLET_WAITS_FOR_OPEN,
    OUTLET_SUPPLIES,
    OUTLET_WAITS_FOR_EPOCH, /**< the program has not asked for what follows the end of an epoch */
    OUTLET_WAITS_FOR_CLOSE, /**< the end of the data, or a failure, is sent */
    OUTLET_CLOSES,          /**< when the rank has received what is under way */
    OUTLET_SENDS_CLOSED,    /**< the last notice is under way */
    OUTLET_CLOSED,
    OUTLET_ABANDONED, /**< the rank does not receive what is under way */
};

struct outlet {
    const struct link *link;
    uint32_t pair;
    int rank; /**< number of the process that receives */
    int tag;  /**< the pair's first one */
    supply_options_t options;

    enum outlet_state state;
    supply_t *supply; /**< NULL: not open */
    struct filler_pair inspected;
    bool has_sent_schema;
    struct request_message request;
    int receiving; /**< operation that receives it */
    struct sending *first;
    struct sending **end;
    uint32_t held;    /**< blocks that are not sent yet */
    int64_t send_end; /**< until when the rank must have received what is under way, or closed a pair that has failed */
    uint64_t elements, bytes; /**< sent */
    struct failure failure;   /**< why the pair has failed; status SUPPLY_OK: it has not */
};

/** The pair of these options. Begins to receive the rank's requests. SUPPLY_OK, or a failure. */
supply_status_t outlet_init(struct outlet *outlet, const struct link *link, const struct processes *processes,
                            uint32_t pair, const supply_options_t *options, struct failure *failure);

/** Does what it can without waiting. *busy is set to true if that was something. SUPPLY_OK, or a failure of the link.
 */
supply_status_t outlet_advance(struct outlet *outlet, bool *busy, struct failure *failure);

#endif

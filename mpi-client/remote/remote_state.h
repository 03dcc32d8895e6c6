/** What a handle whose pairs are opened by feeders has between the calls of the program. */
#ifndef SUPPLY_REMOTE_STATE_H
#define SUPPLY_REMOTE_STATE_H

#include "source.h"

/** A block that is received into a slot of the ring, or an end that takes its turn among the blocks. */
struct arrival {
    supply_status_t status; /**< SUPPLY_OK, _END_OF_EPOCH or _END_OF_DATA */
    struct filled filled;
    int receiving; /**< operation */
    const struct source *source;
};

struct remote {
    struct remote *next_kept; /**< a context that is never freed, either */
    struct link link;
    struct processes processes;
    supply_t *handle;
    char name[512];
    double timeout;
    bool (*interrupted)(void *context);
    void *interrupted_context;

    struct source *sources; /**< of the pairs, which supply blocks in turn */
    uint32_t source_count;
    uint32_t turn; /**< the source of the next block */
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

/** The source of the next notice; NULL: all have ended. */
struct source *remote_next_source(const struct remote *remote);

/** Asks the pairs that have ended an epoch, but not the data, for what follows it. */
void remote_ask_for_epoch(struct remote *remote);

/** The handle's filler. */
struct filler remote_filler(struct remote *remote);

/** Frees the context, or keeps it if operations may use it. *keep: as in struct filler. */
void remote_free(struct remote *remote, bool *keep);

/** The program ends its messages without closing the handle: closes the pairs. Nothing uses the link afterwards. */
void remote_end(void *context);

/** Closes the pairs within `seconds`. reason: NULL at the end of the data. Returns as supply_close_within(). */
supply_status_t remote_close(struct remote *remote, double seconds, const char *reason);

/** A pause in a wait that began at `since`. False: the program interrupts it. */
bool remote_pause(const struct remote *remote, int64_t since);

#endif

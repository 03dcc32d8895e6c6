/** The messages between a feeder and a rank about one pair (docs/design/feeders.md). */
#pragma once

#include "api/filler.h"

/** Raised with every change of the messages: both sides must have the same. */
#define MESSAGES_VERSION 1

/** A pair has these tags, from TAGS_OF_PAIR × its number among the feeder's pairs on. */
enum { TAG_REQUEST, TAG_NOTICE, TAG_BLOCK, TAGS_OF_PAIR };

enum request_kind {
    REMOTE_OPEN = 1,   /**< open the pair */
    REMOTE_NEXT_EPOCH, /**< the program has asked for what follows the end of an epoch */
    REMOTE_CLOSE,      /**< the program has received everything */
    REMOTE_STOP,       /**< the program stops early: `text` says why */
};

/** From a rank to a feeder. */
struct request_message {
    uint32_t kind;
    uint32_t exchange; /**< OPEN: the program exchanges its elements */
    double timeout;    /**< OPEN: time limit of the pair in seconds */
    uint32_t has_position;
    uint32_t reserved;
    supply_position_t position; /**< OPEN: at which the pair begins */
    char text[1024];
};

enum notice_kind {
    NOTICE_OPENED = 1, /**< block_bytes and block_count hold */
    NOTICE_SCHEMA,     /**< the tail has the columns */
    NOTICE_BLOCK,      /**< its bytes follow with TAG_BLOCK */
    NOTICE_END_OF_EPOCH,
    NOTICE_END_OF_DATA,
    NOTICE_FAILURE, /**< status and error hold; the tail is the text */
    NOTICE_CLOSED,  /**< the last one; status says how the pair was closed */
};

/** From a feeder to a rank. What Spark says in the header of the mapped file is in every notice. */
struct notice_message {
    uint32_t kind;
    int32_t status; /**< supply_status_t */
    int32_t error;  /**< errno */
    uint32_t tail_bytes;
    struct filled filled;
    uint64_t block_bytes;
    uint32_t block_count;
    uint32_t counts_known;
    uint64_t plan;
    uint64_t epoch_elements;
    uint64_t epoch_steps;
    uint64_t exchange_seed;
    uint32_t exchange;
    uint32_t exchange_fraction;
    uint32_t schema_columns; /**< of NOTICE_SCHEMA: entries at the beginning of the tail; texts follow them */
    uint32_t unused;
};

/** The largest tail: all columns, or a failure's text. */
#define TAIL_BYTES_MAX SCHEMA_BYTES_MAX

/** The tail follows the message. */
static inline uint8_t *remote_tail(struct notice_message *notice) { return (uint8_t *)(notice + 1); }

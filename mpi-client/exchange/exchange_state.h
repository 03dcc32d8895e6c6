/** The state of an exchange between the calls of the program. Its owner has mover.lock. */
#pragma once

#include "agree.h"
#include "base/clock.h"
#include "gather.h"
#include "mover.h"
#include "positions.h"
#include "transfer.h"

/** What the ranks do next. All pass from one agreement to the next one together. */
enum step {
    STEP_OPEN,    /**< wait for the agreement at the opening */
    STEP_MEET,    /**< wait for the cards of all ranks */
    STEP_LINK,    /**< wait until all have mapped the rings of their neighbours */
    STEP_BOARDS,  /**< wait for the cards of their boards, if there are two levels */
    STEP_RAILS,   /**< wait until all have opened boards and rails: the exchange is open */
    STEP_GATHER,  /**< gather the next window */
    STEP_AGREE,   /**< wait for the agreement on a window, or on another round of one */
    STEP_SAMPLE,  /**< wait for the samples of all ranks */
    STEP_COLUMNS, /**< wait for the columns of another rank */
    STEP_OFFER,   /**< wait for what all ranks have for this one */
    STEP_GRANT,   /**< wait for whether all can take it */
    STEP_COPY,    /**< wait for the places of this rank's elements in its neighbours' slots */
    STEP_MOVE,    /**< wait for the messages */
    STEP_ARRIVE,  /**< wait until all neighbours have copied theirs */
    STEP_DELIVER, /**< the slot has a block */
    STEP_END,     /**< of the epoch or of the data */
};

/** What the windows of all ranks are together. */
struct together {
    uint64_t elements;
    uint32_t epoch;
    uint32_t ended; /**< ranks whose epoch or data ends */
    uint32_t ended_data;
    uint32_t incomplete;
    uint32_t knowing; /**< ranks that know the columns */
    uint32_t first_knowing;
    uint32_t space; /**< for as many bytes of elements every rank has reserved memory */
};

struct exchange {
    struct exchange *next_kept; /**< a context that is never freed, either */
    supply_t *pair;
    supply_t *handle; /**< the one with the exchanged elements */
    supply_t *outer;  /**< the one that the program gets: the same, or a sorter of it */
    struct filler_pair inspected;
    struct exchange_settings settings;
    uint64_t fingerprint; /**< of the settings with what Spark says, here or on another rank; 0: not known yet */
    struct collective collective;
    struct columns columns;
    struct schema_entry *columns_of_other; /**< where they arrive: SCHEMA_BYTES_MAX */

    struct gather gather;
    struct gathered_window window;
    struct destinations destinations;
    struct range range;
    struct agree agree;
    struct round round;
    struct transfer transfer;
    struct neighbours neighbours;
    struct slot_layout layout;
    size_t space; /**< bytes of elements for which memory is reserved */
    struct positions positions;
    struct position start; /**< at which the program opened the pair */

    enum step step;
    int64_t step_since; /**< when it began, or the program's call (supply__clock_now) */
    supply_exchange_statistics_t statistics;
    bool owns_pair;        /**< false: it is the program's, because the exchange is not open yet */
    bool is_resolved;      /**< the settings have what Spark says */
    bool has_memory;       /**< for the columns */
    bool confirms_columns; /**< the agreement says whether every rank could take the columns of another one */
    struct failure failed; /**< of this rank, reported in the next agreement */
    bool spark_has_failed; /**< the pair has returned SUPPLY_ERROR_SPARK */
    int64_t gathers_until; /**< then "not yet" is reported to the others (supply__clock_now) */
    bool is_ready;         /**< the window is complete and checked */

    struct together together; /**< since the last agreement on a window */
    uint32_t number;          /**< of the window, within the epoch */
    bool begins_epoch;        /**< it is the first one of the epoch in this run */
    bool is_part;             /**< another part of it follows, because it has fewer elements than there are ranks */
    uint64_t dealt;           /**< elements of its parts before, one for each rank */
    bool keeps;               /**< this rank has got one, which its slot keeps until all have one */
    bool is_last;             /**< the epoch or the data ends with it, on all ranks */
    bool is_over;             /**< it was, and all of its elements have arrived */
    uint32_t epoch;           /**< of all ranks */
    uint64_t *counts;         /**< elements of each rank */
    bool has_rounds;          /**< another round of it follows */
    uint32_t left;            /**< elements of this rank that later rounds move */
    uint64_t received;        /**< elements of it that have arrived */
    uint64_t consumed;        /**< of those that arrive, by an earlier run */
    struct slot slot;
    enum window_end end; /**< of STEP_END */
    struct filled filled;

    struct mover mover;
    uint64_t delivered; /**< blocks and ends that the program has got: the number of the next one in the ring */
    int64_t awaited_at; /**< when the program's last call for it has returned nothing (supply__clock_now); 0: never */

    /** As of the last call of the program, which alone reads and writes it. */
    struct {
        struct positions positions;
        uint64_t fingerprint;
    } seen;
};

/**
 * Does what is possible without waiting. SUPPLY_AGAIN: another rank or Spark must do something first. SUPPLY_OK,
 * _END_OF_EPOCH, _END_OF_DATA: as exchange_fill(), with exchange->filled; or a failure.
 */
supply_status_t exchange_advance(struct exchange *exchange, struct failure *failure);

/** Whether the program waits for the next block: by a call that has not ended, or by one after the other. */
bool exchange_is_awaited(const struct exchange *exchange);

/** The wait in front of the next exchange_advance(). It has no limit: the step knows its own. */
struct wait exchange_wait_in_step(const struct exchange *exchange);

/** exchange_advance() until it is not SUPPLY_AGAIN. Also SUPPLY_INTERRUPTED. */
supply_status_t exchange_await(struct exchange *exchange, struct failure *failure);

/** The exchange as its handle calls it. */
struct filler exchange_filler(struct exchange *exchange);

/** Stores the statistics for the program, and in the mapped file for supply-stat, which may read while a number is
 * stored. */
void exchange_publish(struct exchange *exchange);

/** Frees it with its transport; or as much of it as no pending operation may use. *keep: as filler.close(). */
void exchange_free(struct exchange *exchange, bool *keep);

/** Frees all but the transport. */
void exchange_free_memory(struct exchange *exchange);

/* The parts of exchange_advance(). Each returns SUPPLY_OK when its step is over. */

/** The steps of the opening after the first agreement. */
supply_status_t exchange_meet(struct exchange *exchange, struct failure *failure);

/** Begins STEP_GATHER. */
void exchange_await_window(struct exchange *exchange);

/** Gathers a window. SUPPLY_OK also if it has failed, or if the other ranks need a sign. */
supply_status_t exchange_gather_window(struct exchange *exchange);

/** Sends this rank's state to the others. */
supply_status_t exchange_begin_agreement(struct exchange *exchange, struct failure *failure);

/** Writes the steps that this rank has passed, for a message. */
void exchange_steps_text(const struct exchange *exchange, char *text, size_t text_bytes);

/** All ranks have agreed on a window, or on another round of one. */
supply_status_t exchange_agreed(struct exchange *exchange, struct failure *failure);

/** The samples of all ranks have arrived. */
supply_status_t exchange_take_samples(struct exchange *exchange, struct failure *failure);

/** Another rank's columns have arrived. */
supply_status_t exchange_take_columns(struct exchange *exchange, struct failure *failure);

/** A window is drawn: prepares its rounds. */
void exchange_begin_rounds(struct exchange *exchange);

/** Begins STEP_OFFER, and does the steps from there to STEP_ARRIVE. */
supply_status_t exchange_begin_round(struct exchange *exchange, struct failure *failure);
supply_status_t exchange_continue_round(struct exchange *exchange, struct failure *failure);

/** After a round: gathers the next window, or ends the epoch. SUPPLY_OK. */
supply_status_t exchange_continue(struct exchange *exchange);

/** All ranks have ended the epoch or the data: STEP_END. SUPPLY_OK. */
supply_status_t exchange_end(struct exchange *exchange);

/** Remembers why this rank fails until the next agreement. The text gets the pair's name if it lacks it. */
void exchange_fail_later(struct exchange *exchange, const struct failure *failure);

/** The program asks for what follows the end of an epoch. */
void exchange_begin_epoch(struct exchange *exchange);

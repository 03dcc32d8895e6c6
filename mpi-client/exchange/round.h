/**
 * A round: how many elements each rank sends to each other one, so that every slot has space for what it receives; and
 * how their values are copied out of a window.
 */
#ifndef SUPPLY_EXCHANGE_ROUND_H
#define SUPPLY_EXCHANGE_ROUND_H

#include "agree.h"
#include "policy.h"
#include "window.h"

/** Some elements of a window, in the order in which they are sent. */
struct pick {
    const struct source_row *rows;
    uint32_t count;
};

/** The lengths of values of any length. */
void exchange_pack_lengths(const struct pick *pick, uint32_t column, int32_t *to);

/** The values, of these lengths. False: what was checked has changed since, and bytes are 0 instead. */
bool exchange_pack_values(const struct pick *pick, uint32_t column, const int32_t *lengths, uint8_t *to);

/** The values of a column of fixed width, or of bits: a byte for each. */
void exchange_pack_data(const struct pick *pick, uint32_t column, const struct format *format, uint8_t *to);

/** A byte for each element: 1 if it is valid. */
void exchange_pack_validity(const struct pick *pick, uint32_t column, uint8_t *to);

/** What one rank has for another one. */
struct offer {
    uint64_t bytes;
    uint64_t elements;
    uint64_t first_bytes; /**< of the first element */
};

/** What one rank takes from another one. */
struct grant {
    uint64_t bytes;
    uint64_t is_whole; /**< the rank can take everything that all ranks offer it */
};

/** A message of the step *count*, before the bytes of each column of any length. */
enum { COUNT_ELEMENTS, COUNT_LEFT, COUNT_BYTES };

/** COUNT_LEFT of a rank whose elements have changed since they were gathered: nobody uses them, and all fail. */
#define LEFT_CHANGED UINT64_MAX

struct round {
    uint32_t rank;
    uint32_t ranks;
    uint32_t number; /**< within the window */
    size_t capacity; /**< bytes that this rank can receive in a round */

    /** For each rank: where in the order its next element is, and the bytes that remain. */
    uint32_t *begins;
    uint64_t *bytes_left;
    uint32_t *counts; /**< of each rank: the elements of this round */
    uint64_t *bytes;  /**< and their bytes, as they were gathered */

    struct offer *offers, *offers_in;
    struct grant *grants, *grants_in;
    bool grants_one; /**< in this round every rank takes one element */
    uint32_t width;  /**< numbers of a message of *count* */
    uint64_t *messages, *messages_in;
};

/** Allocates what needs no columns, and then what does. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_round_init(struct round *round, uint32_t rank, uint32_t ranks, size_t capacity,
                                    struct failure *failure);
supply_status_t exchange_round_set_columns(struct round *round, const struct columns *columns, struct failure *failure);
void exchange_round_free(struct round *round);

/** Begins the rounds of a window. */
void exchange_round_begin_window(struct round *round, const struct columns *columns,
                                 const struct gathered_window *window, const struct destinations *destinations);

/** The rank has failed: it offers nothing. */
void exchange_round_offer_nothing(struct round *round);

/** Fills in the offers. */
void exchange_round_offer(struct round *round, const struct columns *columns, const struct gathered_window *window,
                          const struct destinations *destinations);

/** Fills in the grants, from the offers of all ranks. */
void exchange_round_grant(struct round *round);

/** Bytes of all grants of this rank. */
uint64_t exchange_round_granted(const struct round *round);

/** Takes its grants back. */
void exchange_round_grant_nothing(struct round *round);

/** After the grants of all ranks: whether each rank can take everything, so that this round is the last one. */
bool exchange_round_fits(const struct round *round);

/** Instead of offers and grants: every rank takes everything. */
void exchange_round_grant_all(struct round *round);

/** Fills in other grants, from the same offers: of one element. */
void exchange_round_grant_one(struct round *round);

/** Fills in how many elements each rank gets, from the grants of all ranks. */
void exchange_round_select(struct round *round, const struct columns *columns, const struct gathered_window *window,
                           const struct destinations *destinations);

/** The elements for that rank in this round. */
struct pick exchange_round_pick(const struct round *round, const struct destinations *destinations, uint32_t rank);

static inline uint64_t *exchange_message(uint64_t *messages, const struct round *round, uint32_t rank) {
    return messages + (size_t)rank * round->width;
}

/**
 * Fills in the messages, but for the bytes of columns, and counts the elements as sent. failed: 0, or what is sent
 * instead of the elements that are left, so that another agreement follows: 1, or LEFT_CHANGED.
 */
void exchange_round_count(struct round *round, const struct destinations *destinations, uint64_t failed);

/** Whether all that this rank is to receive fits into what it has granted. */
bool exchange_round_check(const struct round *round, const struct columns *columns);

/** This round's elements are packed: the next ones follow. Returns how many are left. */
uint32_t exchange_round_advance(struct round *round, const struct destinations *destinations);

/** Whether a rank has elements left, so that another round follows. */
bool exchange_round_is_last(const struct round *round);

/** Whether that rank has sent LEFT_CHANGED. */
bool exchange_round_has_change(const struct round *round, uint32_t rank);

#endif

/**
 * A round: how many elements each rank sends to each other one, so that every slot has space for what it receives; and
 * how their values are copied out of a window.
 */
#pragma once

#include "policy.h"
#include "window.h"

/** Some elements of a window, in the order in which they are sent. */
struct pick {
    const struct source_row *rows;
    uint32_t count;
};

/** Columns of one width that are side by side are packed together: so an element is found once for all of them. */
enum { TOGETHER = 4 };

/** What is left of the window's next columns of fixed width: their memory is fetched while others are copied. */
struct ahead {
    const struct piece *piece, *end;
    uint32_t column, column_end, next; /**< next: of the piece */
    size_t width;
    const uint8_t *at, *at_end; /**< of the column before */
};

/** The lengths of values of any length. */
void exchange_pack_lengths(const struct pick *pick, uint32_t column, int32_t *to);

/** Wire buffers from that one on that are packed together: TOGETHER, or 1. */
uint32_t exchange_pack_count(const struct columns *columns, uint32_t index);

/** Of the first values of fixed width from that wire buffer on. */
struct ahead exchange_ahead(const struct columns *columns, const struct gathered_window *window, uint32_t index);

/**
 * Packs wire buffers, as exchange_wire_bytes() says: `count` of them (exchange_pack_count(), or 1), each to its place.
 * lengths: of the values of a column of any length, as they were read before. False: values of these lengths have
 * changed since they were checked, and bytes are 0 instead.
 */
bool exchange_pack(const struct columns *columns, const struct wire_buffer *buffer, uint32_t count,
                   const struct pick *pick, const int32_t *lengths, struct ahead *ahead, uint8_t *const *to);

/** What one rank has for another one in a round: these numbers, and then the bytes of each column of any length. */
enum { OFFER_ELEMENTS, OFFER_LEFT, OFFER_BYTES };

static inline size_t exchange_offer_bytes(uint32_t variable_count) {
    return (OFFER_BYTES + (size_t)variable_count) * sizeof(uint64_t);
}

/** In front of the elements of a message. 1: they have changed since they were gathered. */
typedef uint64_t message_header;

/** What one rank answers to another one's offer. */
struct grant {
    uint64_t verdict;
    uint64_t less; /**< elements that it takes instead, if the offers of a rank do not fit */
    uint64_t next; /**< elements that it takes in the next round, if all offers fit */
};

/** NOTHING: the rank has failed, so no round follows. In order: the worst of all ranks holds. */
enum { GRANT_FITS, GRANT_LESS, GRANT_NOTHING };

/**
 * A window moves in `parts` rounds: in one, if the slots of all ranks can take it. Else the parts are doubled until
 * each rank can take the first of them, so the ranks ask at most log2(elements) times.
 */
struct round {
    uint32_t rank;
    uint32_t ranks;
    uint32_t number; /**< within the window */
    size_t capacity; /**< bytes that this rank can receive in a round */
    uint64_t parts;  /**< of what is left of the window */
    bool is_equal;   /**< all ranks receive the same number of elements in each round but the last one */
    uint64_t quota;  /**< of is_equal: elements that each rank still receives, or one more */

    /** For each rank: where in the order its next element is, and how many elements of this round it gets. */
    uint32_t *begins;
    uint32_t *counts;
    uint64_t *awaited; /**< of each rank: elements of the window that are still to come from it */

    uint32_t width; /**< numbers of an offer */
    uint64_t *offers, *offers_in;
    struct grant *grants, *grants_in;
};

/** Allocates what needs no columns, and then what does. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_round_init(struct round *round, uint32_t rank, uint32_t ranks, size_t capacity,
                                    struct failure *failure);
supply_status_t exchange_round_set_columns(struct round *round, const struct columns *columns, struct failure *failure);
void exchange_round_free(struct round *round);

/** Begins the rounds of a window. elements: of all ranks. */
void exchange_round_begin_window(struct round *round, const struct destinations *destinations, uint64_t elements,
                                 bool is_equal);

static inline uint64_t *exchange_offer(uint64_t *offers, const struct round *round, uint32_t rank) {
    return offers + (size_t)rank * round->width;
}

/**
 * Fills in how many elements each rank gets, and the offers but for the bytes of columns. destinations NULL: it has
 * nothing to offer. has_failed: another agreement must follow.
 */
void exchange_round_offer(struct round *round, const struct destinations *destinations, bool has_failed);

/** Bytes of elements of an offer. UINT64_MAX: no rank can offer that. */
uint64_t exchange_offered_bytes(const uint64_t *offer, const struct columns *columns);

/** Bytes of all that this rank is offered. UINT64_MAX: no rank can offer that. */
uint64_t exchange_round_offered(const struct round *round, const struct columns *columns);

/** Fills in the grants. */
void exchange_round_grant(struct round *round, uint64_t verdict);

/** After the grants of all ranks. What it returns holds for all: _FITS: the offers move; _LESS: smaller ones follow. */
uint64_t exchange_round_decide(struct round *round);

/** This round's elements are packed: the next ones follow. Returns how many are left. */
uint32_t exchange_round_advance(struct round *round, const struct destinations *destinations);

/** Prepares the next round, if exchange_round_is_last() says that there is one. */
void exchange_round_end(struct round *round);

/** Whether a rank has elements left, so that another round follows. */
bool exchange_round_is_last(const struct round *round);

/**
 * Neighbours: ranks of this machine into whose slots this rank copies its elements itself, so that each byte is copied
 * once. Each rank is its own neighbour. A rank offers its ring by the descriptor of memory without a name; those that
 * may open it map it. All others get their elements by the transport.
 *
 * In a round, neighbours agree without messages: a receiver stores in the ring's header where its slot and a table are;
 * the table says where each sender's elements begin; and in the table each sender stores that it has copied them.
 */
#pragma once

#include <string.h>

#include "slot.h"

/** Of what a receiver stores in the ring's header, where a mapped file has its exchange_totals: this ring has none. */
#define WORDS_OFFSET (sizeof(struct mapped_file_header) - BUFFER_ALIGNMENT)

/** What a rank tells the others of its ring. */
struct card {
    uint64_t ring_bytes; /**< 0: it has no neighbours */
    uint64_t machine;    /**< hash of the kernel's name for this run of it */
    uint64_t processes;  /**< inode of the namespace in which `process` is a number */
    uint64_t device;     /**< of the memory, with its inode */
    uint64_t inode;
    int32_t process;
    int32_t descriptor;
};

/** The ring of another rank, or of this one. */
struct neighbour {
    uint8_t *ring; /**< as it is mapped here; NULL: that rank is none */
    size_t bytes;
    int process;       /**< descriptor of it (pidfd), if it is of this machine; -1: there is none */
    bool has_ended;    /**< its process, when this rank looked last */
    uint64_t *arrived; /**< where this rank stores that it has copied: in its table; NULL: it has not said where yet */
    struct slot_layout layout; /**< of another rank's slot, with this rank's place there */
};

struct neighbours {
    uint32_t rank;
    uint32_t ranks;
    uint32_t count; /**< neighbours beside itself */
    struct card mine;
    struct card *cards;    /**< of each rank */
    struct neighbour *all; /**< of each rank */
    size_t link_words;     /**< of a row of links: a bit for each rank */
    uint64_t *mine_linked; /**< the row of this rank: its neighbours, and itself */
    uint64_t *links;       /**< the rows of all ranks */
    uint32_t senders;      /**< ranks beside itself of which this one is a neighbour */
    bool are_all;          /**< every rank is one of every other one: there are no messages */
    bool *changed;         /**< of each rank: its elements have, since they were gathered */

    int fd;          /**< of this rank's ring; -1: it is private memory */
    size_t reserved; /**< bytes of each slot whose pages are reserved */
    size_t slot_bytes;
    uint32_t slots;

    int64_t looks_at; /**< when this rank looks again whether their processes live (supply__clock_now) */
    uint32_t lost;    /**< one whose process has ended, and that has not done its part of the round; NOBODY_LOST */

    uint64_t round;       /**< number of the round, since the opening */
    uint64_t *table;      /**< of this round, in this rank's slot */
    uint64_t own_arrived; /**< that this rank has copied to itself */
    size_t table_bytes;   /**< 0: the columns are not known yet */
    const struct columns *columns;
    struct slot_layout *own_layout; /**< with the place of one rank after the other */
};

/** Allocates what needs no columns. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_neighbours_init(struct neighbours *neighbours, uint32_t rank, uint32_t ranks,
                                         struct failure *failure);

/** This rank's ring, with slots of that size. fd: taken over; -1: the ring is private memory. */
void exchange_neighbours_offer(struct neighbours *neighbours, int fd, void *ring, size_t slot_bytes, uint32_t slots);

/** Fills in the card of memory that others may map. False: they cannot find it. */
bool exchange_fill_card(struct card *card, int fd, size_t bytes);

/** Maps the memory of a card; NULL: this process may not. Nothing else than that memory is ever opened. */
uint8_t *exchange_map_card(const struct card *card);

/** After the cards of all ranks: maps the rings that it may, and fills in neighbours->mine_linked. */
void exchange_neighbours_map(struct neighbours *neighbours);

/** Whether `from` copies its elements into the slot of `to`. */
static inline bool exchange_has_link(const struct neighbours *neighbours, uint32_t from, uint32_t to) {
    return (neighbours->links[from * neighbours->link_words + to / 64] >> to % 64 & 1) != 0;
}

/** Whether two ranks have the same neighbours. */
static inline bool exchange_have_same_links(const struct neighbours *neighbours, uint32_t one, uint32_t other) {
    const size_t words = neighbours->link_words;
    return memcmp(neighbours->links + one * words, neighbours->links + other * words, words * sizeof(uint64_t)) == 0;
}

/** After the links of all ranks. */
void exchange_neighbours_link(struct neighbours *neighbours);

/** Allocates what depends on the columns. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_neighbours_set_columns(struct neighbours *neighbours, const struct columns *columns,
                                                struct failure *failure);

/** Unmaps their rings, and closes this rank's own. Memory that a pending operation may use stays. */
void exchange_neighbours_leave(struct neighbours *neighbours);
void exchange_neighbours_free(struct neighbours *neighbours);

/** Bytes of the table of a slot, for that many senders and columns of any length. */
size_t exchange_neighbours_table_bytes(uint32_t senders, uint32_t variable_count);

/** Reserves the pages of that many bytes of each slot, and of the table: nobody fails by touching them. SUPPLY_OK, or
 * _MEMORY, _CONFIG. */
supply_status_t exchange_neighbours_reserve(struct neighbours *neighbours, size_t bytes, struct failure *failure);

/** The places of all ranks in this rank's slot, one after the other: of rank 0; and then of the rank after `offer`. */
void exchange_neighbours_first(struct neighbours *neighbours);
void exchange_neighbours_next(struct neighbours *neighbours, const uint64_t *offer);

/** Begins a round: tells the neighbours where the elements of each of them begin in this rank's slot. */
void exchange_neighbours_place(struct neighbours *neighbours, struct slot_layout *layout, const struct round *round);

/**
 * Fills in where this rank's elements for a neighbour begin. SUPPLY_OK: it is known, or the rank is none. SUPPLY_AGAIN:
 * it has not said it yet. _CONTRACT: the place is not in that rank's ring, or has no space for what was offered.
 */
supply_status_t exchange_neighbours_find(struct neighbours *neighbours, uint32_t rank, const struct round *round);

/** Of neighbours->lost. */
#define NOBODY_LOST UINT32_MAX

/**
 * While this rank waits for neighbours: looks from time to time whether their processes live. Call it in front of
 * exchange_neighbours_find() and _have_arrived(), which fill in neighbours->lost: what a process has said before its
 * end counts.
 */
void exchange_neighbours_look(struct neighbours *neighbours);

/** This rank has copied its elements to all neighbours: tells them. */
void exchange_neighbours_arrive(struct neighbours *neighbours);

/** Whether all neighbours have copied theirs. Fills in neighbours->changed. */
bool exchange_neighbours_have_arrived(struct neighbours *neighbours);

/**
 * Two levels. Ranks that are neighbours of one another form a node. If all nodes have equally many ranks, more than one
 * of them, the rank at each place of a node belongs to a rail: the ranks at this place of all nodes, with a transport
 * of their own. An operation runs over the rails, whose ranks receive into boards: memory that their node can read.
 * When all ranks of the node have said there that theirs has arrived, each takes from all boards what is for itself.
 */
#pragma once

#include "neighbours.h"
#include "transport.h"

struct board;

struct levels {
    uint32_t rank;
    uint32_t ranks;
    uint32_t nodes; /**< of one level: as many as ranks */
    uint32_t peers; /**< ranks of each node; 1: one level */
    uint32_t node;  /**< of this rank, with its place there */
    uint32_t place;
    uint32_t *order;     /**< rank of each node and place */
    uint32_t *positions; /**< of each rank in it */
    struct neighbours *neighbours;

    struct card mine; /**< of this rank's board; with ring_bytes 0 it has none */
    struct card *cards;
    uint64_t opens; /**< 1: this rank has opened the boards of its node and the rail */
    uint64_t *opened;
    bool is_open; /**< all have */
    bool has_rail;
    struct transport rail;
    struct board **boards; /**< of each place of this node */
    int fd;                /**< of this rank's board */

    /** Of a board. Numbers of operations have two areas, which alternate. */
    size_t board_bytes, numbers_offset, numbers_bytes, messages_offset, messages_bytes;
    size_t numbers_reserved, messages_reserved;

    uint64_t number; /**< of operations */
    uint8_t *send;   /**< numbers in the order of `order` */
    uint64_t *sizes; /**< bytes of the message from each node for each place of this one, on this rank's rail */
    struct part *send_parts, *receive_parts; /**< of the rail */
};

/** One level. Free it also after a failure. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_levels_init(struct levels *levels, struct neighbours *neighbours, struct failure *failure);

/** After the links of all ranks: finds the nodes. False: one level. */
bool exchange_levels_find(struct levels *levels);

/** Makes this rank's board, and its card. capacity: bytes that a rank receives in a round. */
void exchange_levels_make_board(struct levels *levels, size_t capacity);

/** After the cards of all ranks: opens the boards of this node and the rail, if all ranks have boards. */
void exchange_levels_open(struct levels *levels, const struct transport *all);

/** After levels->opened of all ranks. If one has failed, one level remains. */
void exchange_levels_decide(struct levels *levels);

/** Closes boards and rail while an operation may still write into this rank's board. */
void exchange_levels_leave(struct levels *levels);
void exchange_levels_free(struct levels *levels);

/** Reserves memory for the numbers of an operation: of all ranks of an alltoall, of all nodes of an allgather. They do
 * it themselves, but then a failure is this rank's alone. With one level nothing happens. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_levels_reserve(struct levels *levels, size_t bytes, struct failure *failure);

/**
 * After an alltoall of offers with that size: the sum of the messages that this rank's rail will bring. elements: how
 * many elements these have. UINT64_MAX: no rank can offer that.
 */
uint64_t exchange_levels_offered(struct levels *levels, const struct columns *columns, size_t bytes,
                                 uint64_t *elements);

/** Reserves memory for them. SUPPLY_OK, or _MEMORY. */
supply_status_t exchange_levels_reserve_messages(struct levels *levels, size_t bytes, struct failure *failure);

/* The steps of an operation. Those that begin one over the rail store its number. */

supply_status_t exchange_levels_allgather(struct levels *levels, const void *send, size_t bytes, int *operation,
                                          struct failure *failure);
supply_status_t exchange_levels_alltoall(struct levels *levels, const void *send, size_t bytes, int *operation,
                                         struct failure *failure);
supply_status_t exchange_levels_send(struct levels *levels, uint32_t sender, const void *send, size_t bytes,
                                     int *operation, struct failure *failure);
supply_status_t exchange_levels_move(struct levels *levels, const void *send, const struct part *send_parts,
                                     int *operation, struct failure *failure);

/** What this rank's rail has brought may be read. Then says whether that of all ranks of the node may. */
void exchange_levels_post(struct levels *levels);
bool exchange_levels_have_posted(struct levels *levels);

/** Copies the pieces of an operation of that size from the boards. */
void exchange_levels_take_gathered(const struct levels *levels, void *receive, size_t bytes);
void exchange_levels_take_pieces(const struct levels *levels, void *receive, size_t bytes);
void exchange_levels_take_sent(const struct levels *levels, uint32_t sender, void *receive, size_t bytes);

/** The message of a rank of another node. NULL: its place is outside of the board. */
const uint8_t *exchange_levels_message(const struct levels *levels, uint32_t rank, size_t bytes);

/**
 * Boards, and the operations over rails. What other ranks say is not trusted: boards are opened as rings are
 * (neighbours.c), and a message is read only within its board. Its caller has the exchange's lock.
 *
 * A rank begins an operation when it has read what the one before it brought. So when all ranks of a node have
 * posted operation n, all have read n - 1, and two areas for numbers suffice. Between two operations with messages
 * there is an agreement, so one area suffices for these.
 */
#include "levels.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* In front of the places of messages: for each node and place of the board's node, where its message begins. */
struct board {
    uint64_t posted; /* number of the operation whose numbers or messages are here; stored last, with release */
    uint64_t padding[BUFFER_ALIGNMENT / sizeof(uint64_t) - 1];
    uint64_t places[];
};

/* Each rank is a node of its own. */
static void levels_use_one(struct levels *levels) {
    levels->nodes = levels->ranks;
    levels->peers = 1;
    levels->node = levels->rank;
    levels->place = 0;
    for (uint32_t rank = 0; rank < levels->ranks; rank++) levels->order[rank] = levels->positions[rank] = rank;
}

supply_status_t exchange_levels_init(struct levels *levels, struct neighbours *neighbours, struct failure *failure) {
    const uint32_t ranks = neighbours->ranks;
    *levels = (struct levels){
        .rank = neighbours->rank,
        .ranks = ranks,
        .neighbours = neighbours,
        .order = calloc(ranks, sizeof *levels->order),
        .positions = calloc(ranks, sizeof *levels->positions),
        .cards = calloc(ranks, sizeof *levels->cards),
        .opened = calloc(ranks, sizeof *levels->opened),
        .boards = (struct board **)calloc(ranks, sizeof *levels->boards),
        .sizes = calloc(ranks, sizeof *levels->sizes),
        .send_parts = calloc(ranks, sizeof *levels->send_parts),
        .receive_parts = calloc(ranks, sizeof *levels->receive_parts),
        .fd = -1,
    };
    if (levels->order == NULL || levels->positions == NULL || levels->cards == NULL || levels->opened == NULL ||
        levels->boards == NULL || levels->sizes == NULL || levels->send_parts == NULL || levels->receive_parts == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    levels_use_one(levels);
    return SUPPLY_OK;
}

/*
 * Adds the ranks that are neighbours of `first` to the order. Returns how many; 0: one of them has other neighbours
 * than the others.
 */
static uint32_t levels_add_node(struct levels *levels, uint32_t first, uint32_t placed) {
    const struct neighbours *neighbours = levels->neighbours;
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < levels->ranks; rank++) {
        if (!exchange_has_link(neighbours, first, rank)) continue;
        if (levels->positions[rank] != UINT32_MAX || !exchange_have_same_links(neighbours, first, rank)) return 0;
        levels->order[placed + count] = rank;
        levels->positions[rank] = placed + count;
        count++;
    }
    return count;
}

/* Nodes in the order of their first ranks. Returns the ranks of each node; 1: they have not equally many. */
static uint32_t levels_order(struct levels *levels) {
    uint32_t peers = 0, placed = 0;
    for (uint32_t rank = 0; rank < levels->ranks; rank++) levels->positions[rank] = UINT32_MAX;
    for (uint32_t first = 0; first < levels->ranks; first++) {
        if (levels->positions[first] != UINT32_MAX) continue;
        const uint32_t count = levels_add_node(levels, first, placed);
        if (peers == 0) peers = count;
        if (count != peers || levels->positions[first] == UINT32_MAX) return 1;
        placed += count;
    }
    return peers;
}

bool exchange_levels_find(struct levels *levels) {
    const uint32_t peers = levels_order(levels);
    /* On one node nothing is left for messages. */
    if (peers <= 1 || peers == levels->ranks) {
        levels_use_one(levels);
        return false;
    }
    levels->nodes = levels->ranks / peers;
    levels->peers = peers;
    levels->node = levels->positions[levels->rank] / peers;
    levels->place = levels->positions[levels->rank] % peers;
    return true;
}

static uint8_t *levels_at(const struct levels *levels, uint32_t place, size_t offset) {
    return (uint8_t *)levels->boards[place] + offset;
}

/* Where the numbers of the operation under way are. */
static uint8_t *levels_numbers(const struct levels *levels, uint32_t place) {
    return levels_at(levels, place, levels->numbers_offset + levels->number % 2 * levels->numbers_bytes);
}

static void levels_lay_out(struct levels *levels, size_t capacity) {
    const size_t ranks = levels->ranks, headers = ranks * sizeof(uint64_t);
    /* As much as the slots of the node have space for. */
    const size_t messages = levels->peers * capacity + headers;
    levels->numbers_offset = supply__aligned(sizeof(struct board) + headers);
    levels->numbers_bytes = supply__aligned(ranks * exchange_offer_bytes(SCHEMA_ENTRIES_MAX));
    levels->messages_offset = levels->numbers_offset + 2 * levels->numbers_bytes;
    levels->messages_bytes = messages > SCHEMA_BYTES_MAX ? messages : SCHEMA_BYTES_MAX;
    levels->board_bytes = levels->messages_offset + levels->messages_bytes;
}

/* Pages of a board that are not reserved take no memory, so its size does not matter. */
void exchange_levels_make_board(struct levels *levels, size_t capacity) {
    struct failure unused;
    levels_lay_out(levels, capacity);
    levels->fd = supply__filler_memory(levels->board_bytes);
    if (levels->fd < 0 || supply__filler_reserve(levels->fd, 0, levels->numbers_offset, &unused) != SUPPLY_OK) return;
    void *board = mmap(NULL, levels->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, levels->fd, 0);
    if (board == MAP_FAILED) return;
    levels->boards[levels->place] = board;
    exchange_fill_card(&levels->mine, levels->fd, levels->board_bytes);
}

static supply_status_t levels_open_rail(struct levels *levels, const struct transport *all, struct failure *failure) {
    int *of_rail = malloc(levels->nodes * sizeof *of_rail);
    if (of_rail == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    for (uint32_t node = 0; node < levels->nodes; node++)
        of_rail[node] = (int)levels->order[node * levels->peers + levels->place];
    const supply_status_t status =
        all->split(all->context, of_rail, (int)levels->nodes, (int)levels->node, &levels->rail, failure);
    free(of_rail);
    levels->has_rail = status == SUPPLY_OK;
    return status;
}

void exchange_levels_open(struct levels *levels, const struct transport *all) {
    struct failure unused;
    if (all->split == NULL) return;
    const uint32_t *here = levels->order + (size_t)levels->node * levels->peers;
    for (uint32_t place = 0; place < levels->peers; place++) {
        const struct card *card = &levels->cards[here[place]];
        if (card->ring_bytes != levels->board_bytes) return;
        if (place != levels->place) levels->boards[place] = (struct board *)(void *)exchange_map_card(card);
        if (levels->boards[place] == NULL) return;
    }
    for (uint32_t rank = 0; rank < levels->ranks; rank++)
        if (levels->cards[rank].ring_bytes == 0) return;
    levels->opens = levels_open_rail(levels, all, &unused) == SUPPLY_OK;
}

/* Closes the boards. Of this rank's own one the memory stays if an operation may write into it. */
static void levels_close(struct levels *levels, bool is_pending) {
    for (uint32_t place = 0; place < levels->peers && levels->boards != NULL; place++) {
        const bool stays = is_pending && place == levels->place;
        if (levels->boards[place] != NULL && !stays) munmap(levels->boards[place], levels->board_bytes);
        levels->boards[place] = NULL;
    }
    if (levels->fd >= 0) close(levels->fd);
    levels->fd = -1;
    if (levels->has_rail) levels->rail.free(levels->rail.context, is_pending);
    levels->has_rail = false;
}

void exchange_levels_decide(struct levels *levels) {
    levels->is_open = true;
    for (uint32_t rank = 0; rank < levels->ranks; rank++) levels->is_open &= levels->opened[rank] != 0;
    if (levels->is_open) return;
    levels_close(levels, false);
    levels_use_one(levels);
}

void exchange_levels_leave(struct levels *levels) { levels_close(levels, true); }

void exchange_levels_free(struct levels *levels) {
    levels_close(levels, false);
    free(levels->order);
    free(levels->positions);
    free(levels->cards);
    free(levels->opened);
    free((void *)levels->boards);
    free(levels->sizes);
    free(levels->send_parts);
    free(levels->receive_parts);
    free(levels->send);
    *levels = (struct levels){.fd = -1};
}

/* Reserves the pages of an area up to there. SUPPLY_OK, or _MEMORY. */
static supply_status_t levels_reserve(const struct levels *levels, size_t area, size_t reserved, size_t bytes,
                                      struct failure *failure) {
    const supply_status_t status = supply__filler_reserve(levels->fd, area + reserved, bytes - reserved, failure);
    return status == SUPPLY_OK
               ? status
               : supply__fail(failure, SUPPLY_ERROR_MEMORY, "elements for ranks of this machine: %s", failure->text);
}

supply_status_t exchange_levels_reserve(struct levels *levels, size_t bytes, struct failure *failure) {
    if (!levels->is_open || bytes <= levels->numbers_reserved) return SUPPLY_OK;
    for (size_t area = 0; area < 2; area++)
        TRY(levels_reserve(levels, levels->numbers_offset + area * levels->numbers_bytes, levels->numbers_reserved,
                           bytes, failure));
    uint8_t *send = realloc(levels->send, bytes);
    if (send == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    levels->send = send;
    levels->numbers_reserved = bytes;
    return SUPPLY_OK;
}

supply_status_t exchange_levels_reserve_messages(struct levels *levels, size_t bytes, struct failure *failure) {
    if (bytes <= levels->messages_reserved) return SUPPLY_OK;
    TRY(levels_reserve(levels, levels->messages_offset, levels->messages_reserved, bytes, failure));
    levels->messages_reserved = bytes;
    return SUPPLY_OK;
}

/* Begins an operation. Returns where this rank's rail brings its numbers. */
static uint8_t *levels_begin(struct levels *levels, int *operation) {
    levels->number++;
    *operation = NO_OPERATION;
    return levels_numbers(levels, levels->place);
}

supply_status_t exchange_levels_allgather(struct levels *levels, const void *send, size_t bytes, int *operation,
                                          struct failure *failure) {
    uint8_t *receive = levels_begin(levels, operation);
    TRY(exchange_levels_reserve(levels, levels->nodes * bytes, failure));
    return levels->rail.allgather(levels->rail.context, send, receive, bytes, operation, failure);
}

supply_status_t exchange_levels_alltoall(struct levels *levels, const void *send, size_t bytes, int *operation,
                                         struct failure *failure) {
    uint8_t *receive = levels_begin(levels, operation);
    TRY(exchange_levels_reserve(levels, levels->ranks * bytes, failure));
    for (uint32_t i = 0; i < levels->ranks; i++)
        memcpy(levels->send + i * bytes, (const uint8_t *)send + levels->order[i] * bytes, bytes);
    return levels->rail.alltoall(levels->rail.context, levels->send, receive, levels->peers * bytes, operation,
                                 failure);
}

/* The rail of the sender brings the bytes to each node. Other rails have nothing to do. */
supply_status_t exchange_levels_send(struct levels *levels, uint32_t sender, const void *send, size_t bytes,
                                     int *operation, struct failure *failure) {
    const uint32_t from = levels->positions[sender] / levels->peers;
    uint8_t *receive = levels_at(levels, levels->place, levels->messages_offset);
    levels_begin(levels, operation);
    if (levels->positions[sender] % levels->peers != levels->place) return SUPPLY_OK;
    TRY(exchange_levels_reserve_messages(levels, bytes, failure));
    for (uint32_t node = 0; node < levels->nodes; node++) {
        const bool is_sent = levels->rank == sender && node != from;
        levels->send_parts[node] = (struct part){.bytes = is_sent ? bytes : 0};
        levels->receive_parts[node] = (struct part){.bytes = levels->rank != sender && node == from ? bytes : 0};
    }
    if (levels->rank == sender) memcpy(receive, send, bytes);
    return levels->rail.alltoallv(levels->rail.context, send, levels->send_parts, receive, levels->receive_parts,
                                  operation, failure);
}

uint64_t exchange_levels_offered(struct levels *levels, const struct columns *columns, size_t bytes,
                                 uint64_t *elements) {
    const uint8_t *offers = levels_numbers(levels, levels->place);
    uint64_t all = 0;
    *elements = 0;
    for (uint32_t i = 0; i < levels->ranks; i++) {
        const uint64_t *offer = (const uint64_t *)(const void *)(offers + i * bytes);
        const uint64_t offered = exchange_offered_bytes(offer, columns);
        if (offered == UINT64_MAX) return UINT64_MAX;
        const bool is_sent = i / levels->peers != levels->node;
        levels->sizes[i] = is_sent ? sizeof(message_header) + offered : 0;
        all += levels->sizes[i];
        *elements += is_sent ? offer[OFFER_ELEMENTS] : 0;
    }
    return all;
}

/* The parts for the ranks of a node follow one another, and so do those that come from one rank of the rail. */
supply_status_t exchange_levels_move(struct levels *levels, const void *send, const struct part *send_parts,
                                     int *operation, struct failure *failure) {
    struct board *own = levels->boards[levels->place];
    size_t send_at = 0, receive_at = 0;
    levels_begin(levels, operation);
    for (uint32_t node = 0; node < levels->nodes; node++) {
        struct part *to = &levels->send_parts[node], *from = &levels->receive_parts[node];
        *to = (struct part){.offset = send_at};
        *from = (struct part){.offset = receive_at};
        for (uint32_t i = node * levels->peers; i < (node + 1) * levels->peers; i++) {
            to->bytes += send_parts[levels->order[i]].bytes;
            own->places[i] = levels->messages_offset + from->offset + from->bytes;
            from->bytes += levels->sizes[i];
        }
        send_at += to->bytes;
        receive_at += from->bytes;
    }
    return levels->rail.alltoallv(levels->rail.context, send, levels->send_parts,
                                  levels_at(levels, levels->place, levels->messages_offset), levels->receive_parts,
                                  operation, failure);
}

void exchange_levels_post(struct levels *levels) {
    __atomic_store_n(&levels->boards[levels->place]->posted, levels->number, __ATOMIC_RELEASE);
}

bool exchange_levels_have_posted(struct levels *levels) {
    struct neighbours *neighbours = levels->neighbours;
    bool have_all = true;
    for (uint32_t place = 0; place < levels->peers; place++) {
        const uint32_t rank = levels->order[levels->node * levels->peers + place];
        const bool has = __atomic_load_n(&levels->boards[place]->posted, __ATOMIC_ACQUIRE) >= levels->number;
        if (!has && neighbours->all[rank].has_ended) neighbours->lost = rank;
        have_all = have_all && has;
    }
    return have_all;
}

void exchange_levels_take_gathered(const struct levels *levels, void *receive, size_t bytes) {
    for (uint32_t i = 0; i < levels->ranks; i++)
        memcpy((uint8_t *)receive + levels->order[i] * bytes,
               levels_numbers(levels, i % levels->peers) + i / levels->peers * bytes, bytes);
}

void exchange_levels_take_pieces(const struct levels *levels, void *receive, size_t bytes) {
    for (uint32_t i = 0; i < levels->ranks; i++) {
        const uint32_t node = i / levels->peers;
        memcpy((uint8_t *)receive + levels->order[i] * bytes,
               levels_numbers(levels, i % levels->peers) + (node * levels->peers + levels->place) * bytes, bytes);
    }
}

void exchange_levels_take_sent(const struct levels *levels, uint32_t sender, void *receive, size_t bytes) {
    memcpy(receive, levels_at(levels, levels->positions[sender] % levels->peers, levels->messages_offset), bytes);
}

const uint8_t *exchange_levels_message(const struct levels *levels, uint32_t rank, size_t bytes) {
    const uint32_t node = levels->positions[rank] / levels->peers, place = levels->positions[rank] % levels->peers;
    const uint64_t at = SHARED_READ(levels->boards[place]->places[node * levels->peers + levels->place]);
    if (at > levels->board_bytes || bytes > levels->board_bytes - at) return NULL;
    return levels_at(levels, place, at);
}

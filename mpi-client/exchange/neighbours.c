/**
 * Rings of ranks in one another's memory. What other ranks say is not trusted: descriptors are opened only if they
 * are memory of the same kernel, which cannot be cut, and places are checked against the mapping. Its caller has the
 * exchange's lock.
 */
#include "neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout.h"
#include "base/clock.h"
#include "base/mix.h"

/* At WORDS_OFFSET. */
struct ring_words {
    uint64_t round; /* the other two are those of this round; stored last, with release */
    uint64_t slot;  /* offset in the ring */
    uint64_t table;
};
_Static_assert(sizeof(struct ring_words) <= BUFFER_ALIGNMENT, "the words lie in one line of the header");
_Static_assert(offsetof(struct mapped_file_header, rank_failure) +
                       sizeof((struct mapped_file_header *)0)->rank_failure <=
                   WORDS_OFFSET,
               "a mapped file has nothing there");

/* The table: numbers of the whole slot, with the bytes of each column of any length; and then an entry for each sender,
 * with the bytes before it. */
enum { TABLE_SENDERS, TABLE_ELEMENTS, TABLE_BYTES };
enum { ENTRY_RANK, ENTRY_ARRIVED, ENTRY_ELEMENTS, ENTRY_BYTES };

supply_status_t exchange_neighbours_init(struct neighbours *neighbours, uint32_t rank, uint32_t ranks,
                                         struct failure *failure) {
    const size_t words = (ranks + 63) / 64;
    *neighbours = (struct neighbours){
        .rank = rank,
        .ranks = ranks,
        .cards = calloc(ranks, sizeof *neighbours->cards),
        .all = calloc(ranks, sizeof *neighbours->all),
        .link_words = words,
        .mine_linked = calloc(words, sizeof *neighbours->mine_linked),
        .links = calloc(ranks, words * sizeof *neighbours->links),
        .changed = calloc(ranks, sizeof *neighbours->changed),
        .fd = -1,
        .lost = NOBODY_LOST,
    };
    for (uint32_t i = 0; i < ranks && neighbours->all != NULL; i++) neighbours->all[i].process = -1;
    if (neighbours->cards != NULL && neighbours->all != NULL && neighbours->mine_linked != NULL &&
        neighbours->links != NULL && neighbours->changed != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* Of this run of the kernel. Containers have the same. 0: not known. */
static uint64_t neighbours_machine(void) {
    char name[64];
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read(fd, name, sizeof name);
    if (fd >= 0) close(fd);
    return bytes > 0 ? supply__hash(name, (size_t)bytes, 0) : 0;
}

bool exchange_fill_card(struct card *card, int fd, size_t bytes) {
    const uint64_t here = neighbours_machine();
    struct stat processes, memory;
    if (fd < 0 || here == 0 || fstat(fd, &memory) != 0 || stat("/proc/self/ns/pid", &processes) != 0) return false;
    *card = (struct card){
        .ring_bytes = bytes,
        .machine = here,
        .processes = processes.st_ino,
        .device = memory.st_dev,
        .inode = memory.st_ino,
        .process = getpid(),
        .descriptor = fd,
    };
    return true;
}

static void neighbours_add_link(struct neighbours *neighbours, uint32_t rank) {
    neighbours->mine_linked[rank / 64] |= UINT64_C(1) << rank % 64;
}

void exchange_neighbours_offer(struct neighbours *neighbours, int fd, void *ring, size_t slot_bytes, uint32_t slots) {
    const size_t bytes = RING_OFFSET + slots * slot_bytes;
    neighbours->fd = fd;
    neighbours->slot_bytes = slot_bytes;
    neighbours->slots = slots;
    neighbours->all[neighbours->rank] = (struct neighbour){.ring = ring, .bytes = bytes, .process = -1};
    neighbours_add_link(neighbours, neighbours->rank);
    exchange_fill_card(&neighbours->mine, fd, bytes);
}

static bool neighbours_is_memory_of(const struct stat *found, const struct card *card) {
    return S_ISREG(found->st_mode) && found->st_dev == card->device && found->st_ino == card->inode &&
           (uint64_t)found->st_size == card->ring_bytes;
}

uint8_t *exchange_map_card(const struct card *card) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", card->process, card->descriptor);
    if (stat(path, &found) != 0 || !neighbours_is_memory_of(&found, card)) return NULL;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    void *ring = MAP_FAILED;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &found) == 0 && neighbours_is_memory_of(&found, card) && seals >= 0 && (seals & F_SEAL_SHRINK) != 0)
        ring = mmap(NULL, card->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return ring != MAP_FAILED ? ring : NULL;
}

static bool neighbours_is_here(const struct card *card, const struct card *mine) {
    const bool is_mine = card->device == mine->device && card->inode == mine->inode;
    return !is_mine && card->ring_bytes > 0 && card->machine == mine->machine && card->processes == mine->processes;
}

void exchange_neighbours_map(struct neighbours *neighbours) {
    for (uint32_t rank = 0; rank < neighbours->ranks && neighbours->mine.ring_bytes > 0; rank++) {
        const struct card *card = &neighbours->cards[rank];
        struct neighbour *neighbour = &neighbours->all[rank];
        if (rank == neighbours->rank || !neighbours_is_here(card, &neighbours->mine)) continue;
        /* Threads of one process end together, and a thousand of them need more descriptors than they may have. */
        if (card->process != neighbours->mine.process)
            neighbour->process = (int)syscall(SYS_pidfd_open, card->process, 0);
        neighbour->ring = exchange_map_card(card);
        if (neighbour->ring == NULL) continue;
        neighbour->bytes = card->ring_bytes;
        neighbours_add_link(neighbours, rank);
        neighbours->count++;
    }
}

void exchange_neighbours_link(struct neighbours *neighbours) {
    /* Of this rank, whatever others say. */
    memcpy(neighbours->links + neighbours->rank * neighbours->link_words, neighbours->mine_linked,
           neighbours->link_words * sizeof *neighbours->links);
    neighbours->are_all = true;
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        neighbours->senders += rank != neighbours->rank && exchange_has_link(neighbours, rank, neighbours->rank);
        for (uint32_t to = 0; to < neighbours->ranks; to++)
            neighbours->are_all &= exchange_has_link(neighbours, rank, to);
    }
}

size_t exchange_neighbours_table_bytes(uint32_t senders, uint32_t variable_count) {
    const size_t numbers = TABLE_BYTES + senders * ((size_t)ENTRY_BYTES + variable_count) + variable_count;
    return supply__aligned(numbers * sizeof(uint64_t));
}

supply_status_t exchange_neighbours_set_columns(struct neighbours *neighbours, const struct columns *columns,
                                                struct failure *failure) {
    neighbours->table_bytes = exchange_neighbours_table_bytes(neighbours->senders, columns->variable_count);
    neighbours->columns = columns;
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        struct neighbour *neighbour = &neighbours->all[rank];
        if (rank == neighbours->rank || neighbour->ring == NULL) continue;
        TRY(exchange_slot_init(&neighbour->layout, columns, failure));
    }
    return SUPPLY_OK;
}

void exchange_neighbours_leave(struct neighbours *neighbours) {
    for (uint32_t rank = 0; rank < neighbours->ranks && neighbours->all != NULL; rank++) {
        if (neighbours->all[rank].process >= 0) close(neighbours->all[rank].process);
        if (rank != neighbours->rank && neighbours->all[rank].ring != NULL)
            munmap(neighbours->all[rank].ring, neighbours->all[rank].bytes);
        exchange_slot_free(&neighbours->all[rank].layout);
        neighbours->all[rank] = (struct neighbour){.process = -1};
    }
    if (neighbours->fd >= 0) close(neighbours->fd);
    neighbours->fd = -1;
}

void exchange_neighbours_free(struct neighbours *neighbours) {
    exchange_neighbours_leave(neighbours);
    free(neighbours->cards);
    free(neighbours->all);
    free(neighbours->mine_linked);
    free(neighbours->links);
    free(neighbours->changed);
    *neighbours = (struct neighbours){.fd = -1};
}

supply_status_t exchange_neighbours_reserve(struct neighbours *neighbours, size_t bytes, struct failure *failure) {
    bytes += neighbours->table_bytes;
    if (bytes <= neighbours->reserved) return SUPPLY_OK;
    if (bytes > neighbours->slot_bytes)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%u ranks of this machine have too many columns to exchange: set messages_only",
                            neighbours->senders + 1);
    for (uint32_t i = 0; i < neighbours->slots && neighbours->fd >= 0; i++) {
        const size_t begin = RING_OFFSET + i * neighbours->slot_bytes + neighbours->reserved;
        if (supply__filler_reserve(neighbours->fd, begin, bytes - neighbours->reserved, failure) != SUPPLY_OK)
            return supply__fail(failure, SUPPLY_ERROR_MEMORY, "received elements: %s, or set window_bytes smaller",
                                failure->text);
    }
    neighbours->reserved = bytes;
    return SUPPLY_OK;
}

void exchange_neighbours_first(struct neighbours *neighbours) {
    struct slot_layout *layout = neighbours->own_layout;
    memset(layout->bytes_before, 0, neighbours->columns->variable_count * sizeof *layout->bytes_before);
    layout->elements_before = 0;
}

void exchange_neighbours_next(struct neighbours *neighbours, const uint64_t *offer) {
    neighbours->own_layout->elements_before += offer[OFFER_ELEMENTS];
    for (uint32_t i = 0; i < neighbours->columns->variable_count; i++)
        neighbours->own_layout->bytes_before[i] += offer[OFFER_BYTES + i];
}

void exchange_neighbours_place(struct neighbours *neighbours, struct slot_layout *layout, const struct round *round) {
    const struct columns *columns = neighbours->columns;
    const size_t bytes = columns->variable_count * sizeof(uint64_t);
    struct neighbour *own = &neighbours->all[neighbours->rank];
    uint64_t *table = (uint64_t *)(void *)(layout->slot.address + layout->end);
    uint64_t *entry = table + TABLE_BYTES + columns->variable_count;
    neighbours->own_layout = layout;
    exchange_neighbours_first(neighbours);
    table[TABLE_SENDERS] = neighbours->senders;
    table[TABLE_ELEMENTS] = layout->elements;
    memcpy(table + TABLE_BYTES, layout->value_bytes, bytes);
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        if (rank != neighbours->rank && exchange_has_link(neighbours, rank, neighbours->rank)) {
            entry[ENTRY_RANK] = rank;
            entry[ENTRY_ARRIVED] = 0;
            entry[ENTRY_ELEMENTS] = layout->elements_before;
            memcpy(entry + ENTRY_BYTES, layout->bytes_before, bytes);
            entry += ENTRY_BYTES + columns->variable_count;
        }
        neighbours->all[rank].arrived = NULL;
        exchange_neighbours_next(neighbours, exchange_offer(round->offers_in, round, rank));
    }
    struct ring_words *words = (struct ring_words *)(void *)(own->ring + WORDS_OFFSET);
    words->slot = (uint64_t)(layout->slot.address - own->ring);
    words->table = (uint64_t)((uint8_t *)table - own->ring);
    neighbours->table = table;
    /* The block that was in this slot is read before the others write into it. */
    __atomic_store_n(&words->round, ++neighbours->round, __ATOMIC_RELEASE);
}

/* Whether `mine` and what is before them are within `all`, which can be in a ring of that size. */
static bool neighbours_is_within(uint64_t before, uint64_t mine, uint64_t all, uint64_t ring_bytes) {
    return all <= ring_bytes && before <= all && mine <= all - before;
}

/* The entry of this rank in a table; NULL: the table is not within the ring, or has none. */
static uint64_t *neighbours_find_entry(const struct neighbours *neighbours, const struct neighbour *neighbour,
                                       uint64_t at) {
    const uint32_t variable_count = neighbours->columns->variable_count;
    if (at % sizeof(uint64_t) != 0 || at > neighbour->bytes ||
        neighbour->bytes - at < exchange_neighbours_table_bytes(0, variable_count))
        return NULL;
    uint64_t *table = (uint64_t *)(void *)(neighbour->ring + at);
    const uint64_t senders = SHARED_READ(table[TABLE_SENDERS]);
    if (senders >= neighbours->ranks ||
        neighbour->bytes - at < exchange_neighbours_table_bytes((uint32_t)senders, variable_count))
        return NULL;
    uint64_t *entry = table + TABLE_BYTES + variable_count;
    for (uint64_t i = 0; i < senders; i++, entry += ENTRY_BYTES + variable_count)
        if (SHARED_READ(entry[ENTRY_RANK]) == neighbours->rank) return entry;
    return NULL;
}

/* This rank's place in its own slot. */
static void neighbours_find_own(struct neighbours *neighbours, const struct round *round) {
    exchange_neighbours_first(neighbours);
    for (uint32_t rank = 0; rank < neighbours->rank; rank++)
        exchange_neighbours_next(neighbours, exchange_offer(round->offers_in, round, rank));
    neighbours->all[neighbours->rank].arrived = &neighbours->own_arrived;
}

supply_status_t exchange_neighbours_find(struct neighbours *neighbours, uint32_t rank, const struct round *round) {
    const struct columns *columns = neighbours->columns;
    struct neighbour *neighbour = &neighbours->all[rank];
    struct slot_layout *layout = &neighbour->layout;
    if (neighbour->ring == NULL || neighbour->arrived != NULL) return SUPPLY_OK;
    const struct ring_words *words = (const struct ring_words *)(const void *)(neighbour->ring + WORDS_OFFSET);
    const uint64_t *sent = exchange_offer(round->offers, round, rank);
    if (rank == neighbours->rank) {
        neighbours_find_own(neighbours, round);
        return SUPPLY_OK;
    }
    if (__atomic_load_n(&words->round, __ATOMIC_ACQUIRE) != neighbours->round) {
        if (neighbour->has_ended) neighbours->lost = rank;
        return SUPPLY_AGAIN;
    }
    const uint64_t at = SHARED_READ(words->slot), table_at = SHARED_READ(words->table);
    uint64_t *entry = neighbours_find_entry(neighbours, neighbour, table_at);
    if (entry == NULL || at > neighbour->bytes || at % BUFFER_ALIGNMENT != 0) return SUPPLY_ERROR_CONTRACT;
    const uint64_t *table = (const uint64_t *)(const void *)(neighbour->ring + table_at);
    layout->elements_before = SHARED_READ(entry[ENTRY_ELEMENTS]);
    layout->elements = SHARED_READ(table[TABLE_ELEMENTS]);
    if (layout->elements > neighbour->bytes / columns->fixed_bytes ||
        !neighbours_is_within(layout->elements_before, sent[OFFER_ELEMENTS], layout->elements, neighbour->bytes))
        return SUPPLY_ERROR_CONTRACT;
    for (uint32_t i = 0; i < columns->variable_count; i++) {
        layout->value_bytes[i] = SHARED_READ(table[TABLE_BYTES + i]);
        layout->bytes_before[i] = SHARED_READ(entry[ENTRY_BYTES + i]);
        if (!neighbours_is_within(layout->bytes_before[i], sent[OFFER_BYTES + i], layout->value_bytes[i],
                                  neighbour->bytes))
            return SUPPLY_ERROR_CONTRACT;
    }
    const struct slot slot = {neighbour->ring + at, neighbour->bytes - at};
    if (!exchange_slot_arrange(layout, columns, &slot)) return SUPPLY_ERROR_CONTRACT;
    neighbour->arrived = &entry[ENTRY_ARRIVED];
    return SUPPLY_OK;
}

/* While it is awaited, the process may be a zombie, which signals still reach. An old kernel has no pidfd. */
static bool neighbours_has_ended(const struct neighbour *neighbour, pid_t number) {
    struct pollfd process = {.fd = neighbour->process, .events = POLLIN};
    return process.fd >= 0 ? poll(&process, 1, 0) > 0 : kill(number, 0) != 0 && errno == ESRCH;
}

/* Between two looks. */
#define LOOK_SECONDS 0.3

void exchange_neighbours_look(struct neighbours *neighbours) {
    if (supply__clock_now() < neighbours->looks_at) return;
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++)
        if (rank != neighbours->rank && neighbours_is_here(&neighbours->cards[rank], &neighbours->mine))
            neighbours->all[rank].has_ended =
                neighbours_has_ended(&neighbours->all[rank], neighbours->cards[rank].process);
    neighbours->looks_at = supply__clock_after(LOOK_SECONDS);
}

/* What a sender stores when it has copied. */
static uint64_t neighbours_sign(const struct neighbours *neighbours, bool has_changed) {
    return 2 * neighbours->round + has_changed;
}

void exchange_neighbours_arrive(struct neighbours *neighbours) {
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++)
        if (neighbours->all[rank].arrived != NULL)
            __atomic_store_n(neighbours->all[rank].arrived,
                             neighbours_sign(neighbours, neighbours->changed[neighbours->rank]), __ATOMIC_RELEASE);
}

bool exchange_neighbours_have_arrived(struct neighbours *neighbours) {
    const uint64_t *entry = neighbours->table + TABLE_BYTES + neighbours->columns->variable_count;
    bool have_all = true;
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        if (rank == neighbours->rank || !exchange_has_link(neighbours, rank, neighbours->rank)) continue;
        const uint64_t arrived = __atomic_load_n(&entry[ENTRY_ARRIVED], __ATOMIC_ACQUIRE);
        const bool has_arrived = arrived / 2 == neighbours->round;
        if (arrived == neighbours_sign(neighbours, true)) neighbours->changed[rank] = true;
        if (!has_arrived && neighbours->all[rank].has_ended) neighbours->lost = rank;
        have_all = have_all && has_arrived;
        entry += ENTRY_BYTES + neighbours->columns->variable_count;
    }
    return have_all;
}

/**
 * Rings of ranks in one another's memory. What other ranks say is not trusted: descriptors are opened only if they are
 * memory of the same kernel, which cannot be cut, and places are checked against the mapping. It runs in the thread
 * that uses the handle, without a lock.
 */
#include "neighbours.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"
#include "base/mix.h"

/* A message of *place*, before two numbers of each column of any length: its bytes, and those before. */
enum { PLACE_SLOT, PLACE_ELEMENTS, PLACE_BEFORE, PLACE_BYTES };

supply_status_t exchange_neighbours_init(struct neighbours *neighbours, uint32_t rank, uint32_t ranks,
                                         struct failure *failure) {
    *neighbours = (struct neighbours){
        .rank = rank,
        .ranks = ranks,
        .cards = calloc(ranks, sizeof *neighbours->cards),
        .all = calloc(ranks, sizeof *neighbours->all),
        .links = calloc(ranks, sizeof *neighbours->links),
        .links_in = calloc(ranks, sizeof *neighbours->links_in),
        .changed = calloc(ranks, sizeof *neighbours->changed),
        .fd = -1,
    };
    if (neighbours->cards != NULL && neighbours->all != NULL && neighbours->links != NULL &&
        neighbours->links_in != NULL && neighbours->changed != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* Of this run of the kernel. Containers have the same. 0: not known. */
static uint64_t machine(void) {
    char name[64];
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read(fd, name, sizeof name);
    if (fd >= 0) close(fd);
    return bytes > 0 ? supply__hash(name, (size_t)bytes, 0) : 0;
}

void exchange_neighbours_offer(struct neighbours *neighbours, int fd, void *ring, size_t slot_bytes, uint32_t slots) {
    const size_t bytes = RING_OFFSET + slots * slot_bytes;
    struct stat processes, memory;
    neighbours->fd = fd;
    neighbours->slot_bytes = slot_bytes;
    neighbours->slots = slots;
    neighbours->all[neighbours->rank] = (struct neighbour){ring, bytes};
    neighbours->links[neighbours->rank] = 1;
    const uint64_t here = machine();
    if (fd < 0 || here == 0 || fstat(fd, &memory) != 0 || stat("/proc/self/ns/pid", &processes) != 0) return;
    neighbours->mine = (struct card){
        .ring_bytes = bytes,
        .machine = here,
        .processes = processes.st_ino,
        .device = memory.st_dev,
        .inode = memory.st_ino,
        .process = getpid(),
        .descriptor = fd,
    };
}

static bool is_memory_of(const struct stat *found, const struct card *card) {
    return S_ISREG(found->st_mode) && found->st_dev == card->device && found->st_ino == card->inode &&
           (uint64_t)found->st_size == card->ring_bytes;
}

/* The ring of a card; NULL: this process may not map it. Nothing else than that memory is ever opened. */
static uint8_t *neighbours_map(const struct card *card) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", card->process, card->descriptor);
    if (stat(path, &found) != 0 || !is_memory_of(&found, card)) return NULL;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    void *ring = MAP_FAILED;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &found) == 0 && is_memory_of(&found, card) && seals >= 0 && (seals & F_SEAL_SHRINK) != 0)
        ring = mmap(NULL, card->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return ring != MAP_FAILED ? ring : NULL;
}

static bool is_here(const struct card *card, const struct card *mine) {
    const bool is_mine = card->device == mine->device && card->inode == mine->inode;
    return !is_mine && card->ring_bytes > 0 && card->machine == mine->machine && card->processes == mine->processes;
}

void exchange_neighbours_map(struct neighbours *neighbours) {
    for (uint32_t rank = 0; rank < neighbours->ranks && neighbours->mine.ring_bytes > 0; rank++) {
        const struct card *card = &neighbours->cards[rank];
        if (rank == neighbours->rank || !is_here(card, &neighbours->mine)) continue;
        uint8_t *ring = neighbours_map(card);
        if (ring == NULL) continue;
        neighbours->all[rank] = (struct neighbour){ring, card->ring_bytes};
        neighbours->links[rank] = 1;
        neighbours->count++;
    }
}

/* A rank's own elements are copied, whatever others say. */
void exchange_neighbours_link(struct neighbours *neighbours) { neighbours->links_in[neighbours->rank] = 1; }

supply_status_t exchange_neighbours_set_columns(struct neighbours *neighbours, const struct columns *columns,
                                                struct failure *failure) {
    neighbours->width = PLACE_BYTES + 2 * columns->variable_count;
    const size_t count = (size_t)neighbours->ranks * neighbours->width;
    neighbours->places = calloc(count, sizeof *neighbours->places);
    neighbours->places_in = calloc(count, sizeof *neighbours->places_in);
    neighbours->before = calloc(columns->variable_count + 1, sizeof *neighbours->before);
    if (neighbours->places == NULL || neighbours->places_in == NULL || neighbours->before == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return exchange_slot_init(&neighbours->layout, columns, failure);
}

void exchange_neighbours_leave(struct neighbours *neighbours) {
    for (uint32_t rank = 0; rank < neighbours->ranks && neighbours->all != NULL; rank++) {
        if (rank != neighbours->rank && neighbours->all[rank].ring != NULL)
            munmap(neighbours->all[rank].ring, neighbours->all[rank].bytes);
        neighbours->all[rank] = (struct neighbour){0};
    }
    if (neighbours->fd >= 0) close(neighbours->fd);
    neighbours->fd = -1;
}

void exchange_neighbours_free(struct neighbours *neighbours) {
    exchange_neighbours_leave(neighbours);
    free(neighbours->cards);
    free(neighbours->all);
    free(neighbours->links);
    free(neighbours->links_in);
    free(neighbours->changed);
    free(neighbours->places);
    free(neighbours->places_in);
    free(neighbours->before);
    exchange_slot_free(&neighbours->layout);
    *neighbours = (struct neighbours){.fd = -1};
}

supply_status_t exchange_neighbours_reserve(struct neighbours *neighbours, size_t bytes, struct failure *failure) {
    if (bytes <= neighbours->reserved) return SUPPLY_OK;
    for (uint32_t i = 0; i < neighbours->slots && neighbours->fd >= 0; i++) {
        const size_t begin = RING_OFFSET + i * neighbours->slot_bytes + neighbours->reserved;
        if (supply__filler_reserve(neighbours->fd, begin, bytes - neighbours->reserved, failure) != SUPPLY_OK)
            return supply__fail(failure, SUPPLY_ERROR_MEMORY, "received elements: %s, or set window_bytes smaller",
                                failure->text);
    }
    neighbours->reserved = bytes;
    return SUPPLY_OK;
}

void exchange_neighbours_place(struct neighbours *neighbours, const struct slot_layout *layout,
                               const struct columns *columns, const struct round *round) {
    const uint8_t *ring = neighbours->all[neighbours->rank].ring;
    uint64_t elements = 0;
    memset(neighbours->before, 0, columns->variable_count * sizeof *neighbours->before);
    for (uint32_t rank = 0; rank < neighbours->ranks; rank++) {
        const uint64_t *message = exchange_message(round->messages_in, round, rank);
        uint64_t *place = neighbours->places + (size_t)rank * neighbours->width;
        place[PLACE_SLOT] = (uint64_t)(layout->slot.address - ring);
        place[PLACE_ELEMENTS] = layout->elements;
        place[PLACE_BEFORE] = elements;
        elements += message[COUNT_ELEMENTS];
        for (uint32_t i = 0; i < columns->variable_count; i++) {
            place[PLACE_BYTES + 2 * i] = layout->value_bytes[i];
            place[PLACE_BYTES + 2 * i + 1] = neighbours->before[i];
            neighbours->before[i] += message[COUNT_BYTES + i];
        }
    }
}

/* Whether `mine` and what is before them are within `all`, which can be in a ring of that size. */
static bool neighbours_is_within(uint64_t before, uint64_t mine, uint64_t all, uint64_t ring_bytes) {
    return all <= ring_bytes && before <= all && mine <= all - before;
}

bool exchange_neighbours_find(struct neighbours *neighbours, uint32_t rank, const struct columns *columns,
                              const struct round *round, struct place *place) {
    const struct neighbour *neighbour = &neighbours->all[rank];
    /* The others' may be under way still. */
    const uint64_t *places = rank == neighbours->rank ? neighbours->places : neighbours->places_in;
    const uint64_t *message = places + (size_t)rank * neighbours->width;
    const uint64_t *sent = exchange_message(round->messages, round, rank);
    const uint64_t at = message[PLACE_SLOT], elements = message[PLACE_ELEMENTS];
    struct slot_layout *layout = &neighbours->layout;
    if (at > neighbour->bytes || at % BUFFER_ALIGNMENT != 0 || elements > neighbour->bytes / columns->fixed_bytes ||
        !neighbours_is_within(message[PLACE_BEFORE], round->counts[rank], elements, neighbour->bytes))
        return false;
    layout->elements = elements;
    for (uint32_t i = 0; i < columns->variable_count; i++) {
        layout->value_bytes[i] = message[PLACE_BYTES + 2 * i];
        neighbours->before[i] = message[PLACE_BYTES + 2 * i + 1];
        if (!neighbours_is_within(neighbours->before[i], sent[COUNT_BYTES + i], layout->value_bytes[i],
                                  neighbour->bytes))
            return false;
    }
    *place = (struct place){layout, message[PLACE_BEFORE], neighbours->before};
    const struct slot slot = {neighbour->ring + at, neighbour->bytes - at};
    return exchange_slot_arrange(layout, columns, &slot);
}

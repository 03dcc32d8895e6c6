/**
 * Handles whose blocks come from a filler in this process: it plays the task in memory, and the same checks as
 * for a task follow (R2 to R4). It runs in the thread that uses the handle. An exchange's thread asks for slots.
 */
#include "api/filler.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/handle.h"
#include "base/clock.h"
#include "files/file_space.h"

supply_status_t supply__filler_reserve(int fd, size_t begin, size_t bytes, struct failure *failure) {
    if (supply__memory_check(bytes, "", failure) != SUPPLY_OK) return failure->status;
    const int error = supply__space_allocate(fd, begin, bytes);
    if (error == 0) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%zu bytes of memory cannot be reserved: %s", bytes,
                        strerror(error));
}

int supply__filler_memory(size_t bytes) {
    const int fd = supply__space_unnamed(bytes, MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
        supply__space_allocate(fd, 0, RING_OFFSET) == 0)
        return fd;
    close(fd);
    return -1;
}

static supply_status_t allocate_ring(struct pair *pair, int *fd, struct failure *failure) {
    struct mapped_file *ring = &pair->mapped_file;
    ring->bytes = RING_OFFSET + pair->settings.block_bytes * pair->settings.block_count;
    if (fd != NULL) *fd = supply__filler_memory(ring->bytes);
    const bool is_shared = fd != NULL && *fd >= 0;
    const int flags = is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *address = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, flags, is_shared ? *fd : -1, 0);
    if (address == MAP_FAILED)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: %zu bytes of memory cannot be reserved: %m", pair->name,
                            ring->bytes);
    ring->address = address;
    supply__mapped_file_fill(ring, &pair->settings);
    return SUPPLY_OK;
}

static supply_status_t filler_open_pair(struct pair *pair, const struct filler_pair *like, size_t slot_bytes,
                                        uint32_t slots, int *ring, struct failure *failure) {
    *pair = (struct pair){
        .settings = {.rank = like->rank,
                     .local_rank = -1,
                     .timeout = like->timeout,
                     .interruption = like->interruption,
                     .block_bytes = slot_bytes,
                     .block_count = slots,
                     .group = NO_GROUP,
                     .generation = 1,
                     .start = like->start},
        .mapped_file = MAPPED_FILE_NONE,
        .request_pipe = CLAIMED_FILE_NONE,
        .notification_pipe = CLAIMED_FILE_NONE,
        .name = strdup(like->name),
        .held = calloc(slots, sizeof *pair->held),
        .exported = calloc(slots, sizeof *pair->exported),
    };
    if (pair->name == NULL || pair->held == NULL || pair->exported == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return allocate_ring(pair, ring, failure);
}

supply_status_t supply__filler_open(supply_t **supply, const struct filler *filler, const struct filler_pair *like,
                                    size_t slot_bytes, uint32_t slots, int *ring, struct failure *failure) {
    supply_t *handle = calloc(1, sizeof *handle);
    if (handle == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    handle->is_filled = true;
    handle->filler = *filler;
    supply_status_t status = filler_open_pair(&handle->pair, like, slot_bytes, slots, ring, failure);
    if (status == SUPPLY_OK) status = supply__blocks_allocate(&handle->blocks, &handle->pair, failure);
    if (status == SUPPLY_OK) {
        handle->exports = supply__exports_new(handle);
        if (handle->exports == NULL) status = supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    }
    if (status != SUPPLY_OK) {
        supply__pair_close(&handle->pair);
        supply__blocks_free(&handle->blocks);
        free(handle);
        return status;
    }
    handle->is_open = true;
    handle->consumed = (struct position){.epoch = like->start.epoch};
    *supply = handle;
    return SUPPLY_OK;
}

struct mapped_file_header *supply__filler_header(supply_t *supply) { return supply->pair.mapped_file.header; }

bool supply__filler_is_waiting(const supply_t *supply) { return supply->quiet_since != 0; }

supply_exchange_statistics_t *supply__filler_statistics(supply_t *supply) { return &supply->statistics.exchange; }

static struct slot slot_of(const struct pair *pair, uint64_t sequence) {
    return (struct slot){.address = pair->mapped_file.address + supply__ring_slot_offset(&pair->settings, sequence),
                         .bytes = pair->settings.block_bytes};
}

bool supply__filler_slot_of(supply_t *supply, uint64_t sequence, struct slot *slot) {
    const struct pair *pair = &supply->pair;
    supply__lock(supply);
    const uint64_t released = pair->released;
    supply__unlock(supply);
    if (sequence - released >= pair->settings.block_count) return false;
    *slot = slot_of(pair, sequence);
    return true;
}

supply_status_t supply__filler_set_schema(supply_t *supply, const struct schema *schema, struct failure *failure) {
    struct mapped_file *ring = &supply->pair.mapped_file;
    struct mapped_file_header *header = ring->header;
    if (header->schema_columns != 0) return SUPPLY_OK;
    const size_t bytes = supply__schema_bytes(schema);
    const bool is_wide = supply__schema_is_wide(schema);
    if (is_wide && (ring->wide_schema = malloc(bytes)) == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", supply->pair.name);
    struct schema_entry *to = is_wide ? ring->wide_schema : (struct schema_entry *)(ring->address + SCHEMA_OFFSET);
    memcpy(to, schema->entries, bytes);
    for (uint32_t i = 0; i < schema->count; i++)
        if (strcmp(to[i].format, "vz") == 0) strcpy(to[i].format, "z");
    header->schema_bytes = is_wide ? (uint32_t)bytes : 0;
    header->schema_columns = schema->count;
    return SUPPLY_OK;
}

supply_status_t supply__filler_inspect(const supply_t *pair, struct filler_pair *inspected) {
    if (pair == NULL || !pair->is_open || !*pair->exports->is_mine) return SUPPLY_ERROR_ARGUMENT;
    const struct settings *settings = &pair->pair.settings;
    *inspected = (struct filler_pair){
        .header = pair->pair.mapped_file.header,
        .name = pair->pair.name,
        .rank = settings->rank,
        .readers = settings->readers > 0 ? settings->readers : 1,
        .slot_bytes = settings->block_bytes,
        .slots = settings->block_count,
        .timeout = settings->timeout,
        .interruption = settings->interruption,
        .start = settings->start,
        .has_failed = pair->broken.status != SUPPLY_OK,
        .has_received = pair->pair.expected > 0,
        .accepts_exchange = settings->exchange,
    };
    return SUPPLY_OK;
}

supply_status_t supply__filler_schema(supply_t *supply, const struct schema **schema, struct failure *failure) {
    const supply_status_t status = supply__schema_learn(supply);
    *schema = NULL;
    if (status == SUPPLY_ERROR_NO_SCHEMA) return SUPPLY_OK;
    if (status != SUPPLY_OK) return supply__fail(failure, status, "%s", supply->failure.text);
    *schema = &supply->blocks.schema;
    return SUPPLY_OK;
}

const struct pair *supply__filler_pair(const supply_t *supply) {
    while (supply->is_filled) supply = supply->filler.pair(supply->filler.context);
    return &supply->pair;
}

void supply__filler_abandon(supply_t *pair) { supply__pair_abandon(&pair->pair); }

void supply__filler_claim(supply_t *pair) { pair->claimed = true; }

void supply__filler_fail(supply_t *pair, const struct failure *failure) {
    pair->failure = *failure;
    pair->broken = *failure;
    /* Programs repeat a call that was interrupted. */
    if (failure->status == SUPPLY_INTERRUPTED) pair->broken.status = SUPPLY_ERROR_ARGUMENT;
}

/* Notifies this side of what the filler has stored, as a task does. */
static struct notification filler_publish(struct pair *pair, uint32_t kind, uint32_t columns,
                                          const struct filled *filled) {
    struct block_header *header =
        (struct block_header *)(pair->mapped_file.address + supply__ring_slot_offset(&pair->settings, pair->expected));
    const struct notification notification = {
        .generation = pair->settings.generation,
        .kind = kind,
        .element_count = filled->element_count,
        .sequence = pair->expected,
        .epoch = filled->epoch,
        .partition = filled->partition,
        .first_element = filled->first_element,
        .offset = supply__ring_slot_offset(&pair->settings, pair->expected),
        .size = kind == NOTIFICATION_BLOCK ? filled->bytes : sizeof *header,
    };
    *header =
        (struct block_header){.notification = notification, .column_count = kind == NOTIFICATION_BLOCK ? columns : 0};
    pair->mapped_file.header->published = pair->expected + 1;
    return notification;
}

static supply_status_t filler_take(supply_t *supply, uint32_t kind, const struct filled *filled,
                                   supply_block_t *block) {
    const uint32_t columns = supply->pair.mapped_file.header->schema_columns;
    const struct notification notification = filler_publish(&supply->pair, kind, columns, filled);
    return supply__take(supply, &notification, block);
}

static supply_status_t filler_fill(supply_t *supply, supply_block_t *block, bool wait) {
    const struct pair *pair = &supply->pair;
    const struct slot slot = slot_of(pair, pair->expected);
    struct filled filled = {0};
    const supply_status_t status = supply->filler.fill(supply->filler.context, &slot, wait, &filled, &supply->failure);
    switch (status) {
        case SUPPLY_OK:
            return filler_take(supply, NOTIFICATION_BLOCK, &filled, block);
        case SUPPLY_END_OF_EPOCH:
            return filler_take(supply, NOTIFICATION_END_OF_EPOCH, &filled, block);
        case SUPPLY_END_OF_DATA:
            return filler_take(supply, NOTIFICATION_END_OF_DATA, &filled, block);
        default:
            return status;
    }
}

supply_status_t supply__filler_receive(supply_t *supply, supply_block_t *block, bool wait) {
    supply_status_t status = supply__check_credit(supply, "");
    if (status != SUPPLY_AGAIN) return status;
    const int64_t since = supply->quiet_since != 0 ? supply->quiet_since : supply__clock_now();
    status = filler_fill(supply, block, wait);
    supply->quiet_since = status == SUPPLY_AGAIN ? since : 0;
    if (status != SUPPLY_AGAIN)
        supply->statistics.seconds_waited += (double)(supply__clock_now() - since) / NANOSECONDS;
    return status;
}

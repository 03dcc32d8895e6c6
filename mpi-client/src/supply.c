/** The calls of supply.h, but the Datum's (datum.c). */
#include "supply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "handle.h"

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

const char *supply_version(void) { return SUPPLY_VERSION; }

const char *supply_contract_version(void) { return TEXT(VERSION_MAJOR) "." TEXT(VERSION_MINOR); }

const char *supply_status_name(supply_status_t status) {
    switch (status) {
        case SUPPLY_OK:
            return "SUPPLY_OK";
        case SUPPLY_END_OF_EPOCH:
            return "SUPPLY_END_OF_EPOCH";
        case SUPPLY_END_OF_DATA:
            return "SUPPLY_END_OF_DATA";
        case SUPPLY_AGAIN:
            return "SUPPLY_AGAIN";
        case SUPPLY_ERROR_ARGUMENT:
            return "SUPPLY_ERROR_ARGUMENT";
        case SUPPLY_ERROR_CONFIG:
            return "SUPPLY_ERROR_CONFIG";
        case SUPPLY_ERROR_IN_USE:
            return "SUPPLY_ERROR_IN_USE";
        case SUPPLY_ERROR_NO_SPACE:
            return "SUPPLY_ERROR_NO_SPACE";
        case SUPPLY_ERROR_SYSTEM:
            return "SUPPLY_ERROR_SYSTEM";
        case SUPPLY_ERROR_TIMEOUT:
            return "SUPPLY_ERROR_TIMEOUT";
        case SUPPLY_ERROR_SPARK:
            return "SUPPLY_ERROR_SPARK";
        case SUPPLY_ERROR_CONTRACT:
            return "SUPPLY_ERROR_CONTRACT";
        case SUPPLY_ERROR_MEMORY:
            return "SUPPLY_ERROR_MEMORY";
        case SUPPLY_ERROR_ALL_HELD:
            return "SUPPLY_ERROR_ALL_HELD";
    }
    return "unknown status";
}

supply_status_t supply_open_settings(supply_t *supply, struct settings *settings) {
    supply_status_t status = supply_pair_open(&supply->pair, settings, &supply->failure);
    if (status != SUPPLY_OK) return status;
    supply->is_open = true;
    supply->consumed = supply->pair.settings.start;
    supply->exports = supply_exports_new(supply);
    if (supply->exports == NULL) return supply_fail(&supply->failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return supply_blocks_allocate(&supply->blocks, &supply->pair, &supply->failure);
}

/* The mapping stays where Arrow arrays are not released. */
static void close_pair(supply_t *supply) {
    if (!supply->is_open) return;
    struct mapped_file *mapped = &supply->pair.mapped_file;
    uint8_t *address = mapped->address;
    const size_t bytes = mapped->bytes;
    if (supply->exports != NULL) mapped->address = NULL;
    supply_pair_close(&supply->pair);
    supply_exports_leave(supply->exports, address, bytes);
    supply->exports = NULL;
    supply->is_open = false;
}

supply_status_t supply_open(supply_t **supply, const supply_options_t *options) {
    if (supply == NULL) return SUPPLY_ERROR_ARGUMENT;
    *supply = calloc(1, sizeof **supply);
    if (*supply == NULL) return SUPPLY_ERROR_MEMORY;
    supply_options_t defaults;
    supply_options_init(&defaults);
    struct settings settings;
    supply_status_t status = supply_settings(options ? options : &defaults, &settings, &(*supply)->failure);
    if (status == SUPPLY_OK) status = supply_open_settings(*supply, &settings);
    supply_settings_free(&settings);
    if (status != SUPPLY_OK) close_pair(*supply);
    return status;
}

static void close_and_free(supply_t *supply) {
    close_pair(supply);
    supply_blocks_free(&supply->blocks);
    free(supply);
}

static bool ended_by_timeout(const supply_t *supply) { return supply->failure.status == SUPPLY_ERROR_TIMEOUT; }

/* Before the end of data Spark is told why: what went wrong, where something did. */
static void stop_early(supply_t *supply) {
    const int rank = supply->pair.settings.rank;
    char reason[sizeof supply->failure.text + 64];
    if (supply->broken.status == SUPPLY_ERROR_SPARK) return;
    if (supply->broken.status != SUPPLY_OK || ended_by_timeout(supply))
        snprintf(reason, sizeof reason, "rank %d gave up: %s", rank,
                 supply->broken.status != SUPPLY_OK ? supply->broken.text : supply->failure.text);
    else
        snprintf(reason, sizeof reason,
                 "rank %d closed its pair before the end of data (epoch %u, sequence %" PRIu64 ")", rank, supply->epoch,
                 supply->pair.expected);
    supply_pair_stop(&supply->pair, reason);
}

void supply_close(supply_t *supply) {
    if (supply == NULL) return;
    if (supply->is_open) {
        supply_exports_detach(supply->exports);
        if (supply->at_end_of_data)
            supply_pair_end(&supply->pair);
        else
            stop_early(supply);
    }
    close_and_free(supply);
}

void supply_abort(supply_t *supply, const char *reason) {
    if (supply == NULL) return;
    if (supply->is_open) {
        supply_exports_detach(supply->exports);
        if (supply->at_end_of_data)
            supply_pair_release_all(&supply->pair);
        else
            supply_pair_stop(&supply->pair, reason ? reason : "the rank gave up and did not say why");
    }
    close_and_free(supply);
}

const char *supply_error(const supply_t *supply) {
    if (supply == NULL) return "out of memory, or supply_open() was given no place for the handle";
    if (supply->failure.status == SUPPLY_OK) return "no failure";
    return supply->failure.text;
}

static supply_status_t next(supply_t *supply, supply_block_t *block, bool wait) {
    if (supply == NULL || !supply->is_open) return SUPPLY_ERROR_ARGUMENT;
    if (block == NULL)
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_next: block must not be NULL");
    if (supply->iterating)
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                           "supply_next: supply_next_datum() is in the middle of a block: call one or the other within "
                           "an epoch");
    return supply_receive(supply, block, wait);
}

supply_status_t supply_next(supply_t *supply, supply_block_t *block) { return next(supply, block, true); }

supply_status_t supply_try_next(supply_t *supply, supply_block_t *block) { return next(supply, block, false); }

supply_status_t supply_release(supply_t *supply, const supply_block_t *block) {
    if (supply == NULL || !supply->is_open) return SUPPLY_ERROR_ARGUMENT;
    if (block == NULL || !supply_holds(supply, block->sequence))
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_release: %s",
                           block == NULL ? "block must not be NULL" : "the block is not held: it has been released");
    if (supply->iterating && block->sequence == supply->iterated.sequence)
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                           "supply_release: supply_next_datum() releases its blocks by itself");
    supply_give_back(supply, block->sequence);
    return SUPPLY_OK;
}

supply_status_t supply_column(supply_t *supply, const supply_block_t *block, size_t index, supply_column_t *column) {
    if (supply == NULL || !supply->is_open) return SUPPLY_ERROR_ARGUMENT;
    if (block == NULL || column == NULL || !supply_holds(supply, block->sequence))
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_column: %s",
                           block == NULL || column == NULL ? "block and column must not be NULL"
                                                           : "the block is not held: it has been released");
    if (index >= supply->blocks.schema.count)
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_column: no column %zu among %u", index,
                           supply->blocks.schema.count);
    return supply_block_column(&supply->blocks, &supply->pair,
                               supply_blocks_at(&supply->blocks, &supply->pair, block->sequence), (uint32_t)index,
                               column, &supply->failure);
}

int supply_column_index(const supply_t *supply, const char *name) {
    if (supply == NULL || !supply->is_open || name == NULL) return -1;
    const struct schema *schema = &supply->blocks.schema;
    if (schema->count != 0) return supply_schema_index(schema->entries, schema->count, name);
    /* Before the first block: the schema as it stands in the mapped file, if it does already. */
    const struct mapped_file_header *header = supply_mapped_header(&supply->pair.mapped_file);
    uint32_t count = __atomic_load_n(&header->schema_columns, __ATOMIC_ACQUIRE);
    if (count > SCHEMA_COLUMNS_MAX) return -1;
    return supply_schema_index((const struct schema_entry *)(supply->pair.mapped_file.address + SCHEMA_OFFSET), count,
                               name);
}

int supply_fd(const supply_t *supply) {
    return supply != NULL && supply->is_open ? supply->pair.notification_pipe.fd : -1;
}

const void *supply_mapping(const supply_t *supply, size_t *bytes) {
    bool is_open = supply != NULL && supply->is_open;
    if (bytes != NULL) *bytes = is_open ? supply->pair.mapped_file.bytes : 0;
    return is_open ? supply->pair.mapped_file.address : NULL;
}

void supply_get_statistics(const supply_t *supply, supply_statistics_t *statistics) {
    *statistics = supply != NULL ? supply->statistics : (supply_statistics_t){0};
}

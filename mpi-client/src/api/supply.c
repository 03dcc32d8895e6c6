/**
 * The functions of supply.h, except those of the schema (fields.c), of values and Datums (values.c) and of positions
 * and counts (position.c). They check their arguments, and call what does the work. Only the thread that uses the
 * handle calls them; the lock is taken where Arrow arrays may be released meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "base/wait.h"
#include "supply.h"

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

const char *supply_version(void) {
    return TEXT(SUPPLY_VERSION_MAJOR) "." TEXT(SUPPLY_VERSION_MINOR) "." TEXT(SUPPLY_VERSION_PATCH);
}

const char *supply_contract_version(void) { return TEXT(VERSION_MAJOR) "." TEXT(VERSION_MINOR); }

#define NAME_OF(status, value)                                                                                         \
    case status:                                                                                                       \
        return #status;

const char *supply_status_name(supply_status_t status) {
    switch (status) { SUPPLY_STATUSES(NAME_OF) }
    return "unknown status";
}

supply_status_t supply__open_settings(supply_t *supply, struct settings *settings) {
    TRY(supply__pair_open(&supply->pair, settings, &supply->failure));
    supply->is_open = true;
    supply->consumed = supply->pair.settings.start;
    supply->exports = supply__exports_new(supply);
    if (supply->exports == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_MEMORY, "out of memory, or Linux before 4.14");
    return supply__blocks_allocate(&supply->blocks, &supply->pair, &supply->failure);
}

/* The mapping stays until the last Arrow array is released. False and errno: a file is still there. */
static bool handle_close_pair(supply_t *supply) {
    if (!supply->is_open) return true;
    struct mapped_file *mapped = &supply->pair.mapped_file;
    /* A ring that a pending operation uses is never unmapped. The list then has the foreign files only. */
    struct exported_mappings mappings = {.list[0] = {mapped->address, mapped->bytes},
                                         .count = supply->keep_ring ? 0 : 1};
    supply__foreign_files_close(&supply->blocks.foreign_files, &mappings);
    if (supply->exports != NULL || supply->keep_ring) mapped->address = NULL;
    const bool gone = supply__pair_close(&supply->pair);
    if (supply->exports != NULL) supply__exports_leave(supply->exports, &mappings);
    supply->exports = NULL;
    supply->is_open = false;
    return gone;
}

supply_status_t supply_open(supply_t **supply, const supply_options_t *options) {
    if (supply == NULL) return SUPPLY_ERROR_ARGUMENT;
    *supply = calloc(1, sizeof **supply);
    if (*supply == NULL) return SUPPLY_ERROR_MEMORY;
    struct settings settings;
    supply_status_t status = supply__settings(options, &settings, &(*supply)->failure);
    if (status == SUPPLY_OK) status = supply__open_settings(*supply, &settings);
    supply__settings_free(&settings);
    if (status == SUPPLY_ERROR_IN_USE) supply__explain_local_rank(options, &(*supply)->failure);
    if (status != SUPPLY_OK) handle_close_pair(*supply);
    return status;
}

static void handle_free(supply_t *supply) {
    supply__blocks_free(&supply->blocks);
    free(supply);
}

static supply_status_t close_and_free(supply_t *supply, supply_status_t status) {
    int error = errno;
    if (!handle_close_pair(supply) && status == SUPPLY_OK) {
        status = SUPPLY_ERROR_SYSTEM;
        error = errno;
    }
    handle_free(supply);
    errno = error;
    return status;
}

static bool ended_by_timeout(const supply_t *supply) { return supply->failure.status == SUPPLY_ERROR_TIMEOUT; }

/* Why the rank stops before the end of data. */
static void early_reason(const supply_t *supply, char *reason, size_t bytes) {
    const int rank = supply->pair.settings.rank;
    if (supply->broken.status != SUPPLY_OK || ended_by_timeout(supply))
        snprintf(reason, bytes, "rank %d failed: %s", rank,
                 supply->broken.status != SUPPLY_OK ? supply->broken.text : supply->failure.text);
    else
        snprintf(reason, bytes, "rank %d closed its pair before the end of data (epoch %u, sequence %" PRIu64 ")", rank,
                 supply->epoch, supply->pair.expected);
}

static supply_status_t handle_leave_pair(supply_t *supply, double seconds) {
    if (supply->at_end_of_data) return supply__pair_await_end(&supply->pair, seconds);
    char reason[sizeof supply->failure.text + 64];
    early_reason(supply, reason, sizeof reason);
    if (supply->broken.status != SUPPLY_ERROR_SPARK) supply__pair_stop(&supply->pair, reason);
    return SUPPLY_OK;
}

static supply_status_t leave_filler(supply_t *supply, double seconds) {
    char reason[sizeof supply->failure.text + 64];
    early_reason(supply, reason, sizeof reason);
    return supply->filler.close(supply->filler.context, seconds, supply->at_end_of_data ? NULL : reason,
                                &supply->keep_ring);
}

static bool handle_is_in_child(const supply_t *supply) { return supply->is_open && !*supply->exports->is_mine; }

supply_status_t supply__check_open(const supply_t *supply) {
    if (supply == NULL) return SUPPLY_ERROR_ARGUMENT;
    return supply->is_open ? SUPPLY_OK : supply->failure.status;
}

supply_status_t supply__check_mine(supply_t *supply, const char *call) {
    TRY(supply__check_open(supply));
    if (*supply->exports->is_mine) return SUPPLY_OK;
    return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                        "%s: %s was opened by process %d, from which this one was forked: read in that process, or let "
                        "this one open a pair of its own",
                        call, supply->pair.name, (int)supply->exports->process);
}

supply_status_t supply__check_held(supply_t *supply, const char *call, const supply_block_t *block, bool are_given) {
    TRY(supply__check_open(supply));
    if (block == NULL || !are_given)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "%s: no argument may be NULL", call);
    supply__lock(supply);
    const bool is_held = supply__pair_holds(&supply->pair, block->sequence);
    supply__unlock(supply);
    if (is_held) return SUPPLY_OK;
    return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "%s: the block is not held: it has been released",
                        call);
}

/* Why the end failed, for a program that has no handle any more. */
static void explain_end(supply_t *supply, supply_status_t status) {
    struct failure *failure = &supply->failure;
    const char *name = supply->pair.name;
    if (status == SUPPLY_ERROR_SPARK && !supply->is_filled)
        supply__pair_fail_by_spark(&supply->pair, failure);
    else if (status == SUPPLY_ERROR_SPARK)
        supply__fail(failure, status,
                     "%s: this rank has received everything, but Spark's run has failed meanwhile: see Spark's log",
                     name);
    else if (status == SUPPLY_ERROR_TIMEOUT)
        supply__fail(failure, status,
                     "%s: this rank has received everything, but Spark has not confirmed it within %g s: see Spark's "
                     "log (--timeout / SUPPLY_TIMEOUT)",
                     name, supply->pair.settings.timeout);
    else if (status == SUPPLY_ERROR_CONTRACT)
        supply__fail(failure, status,
                     "%s: this rank has received everything, but another program writes into its notification pipe",
                     name);
    else
        supply__fail(failure, status, "%s: a pipe of the pair cannot be read at the end: %m", name);
}

supply_status_t supply_close_within(supply_t *supply, double seconds, char *text) {
    char unused[SUPPLY_TEXT_BYTES];
    if (text == NULL) text = unused;
    text[0] = '\0';
    if (supply == NULL) return SUPPLY_OK;
    if (handle_is_in_child(supply)) return supply_abandon_in_child(supply);
    supply_status_t status = SUPPLY_OK;
    if (supply->is_open) {
        supply__exports_detach(supply->exports);
        const double limit = seconds > 0 ? seconds : 0;
        status = supply->is_filled ? leave_filler(supply, limit) : handle_leave_pair(supply, limit);
    }
    if (status > SUPPLY_OK) return status;
    if (status < SUPPLY_OK) {
        explain_end(supply, status);
        memcpy(text, supply->failure.text, SUPPLY_TEXT_BYTES);
    }
    const supply_status_t closed = close_and_free(supply, status);
    if (closed != status) snprintf(text, SUPPLY_TEXT_BYTES, "a file of the pair cannot be removed: %m");
    return closed;
}

supply_status_t supply_close(supply_t *supply) { return supply_close_within(supply, INFINITY, NULL); }

supply_status_t supply_finish(supply_t *supply, char *text) {
    char unused[SUPPLY_TEXT_BYTES];
    if (text == NULL) text = unused;
    if (supply != NULL && (supply->at_end_of_data || handle_is_in_child(supply)))
        return supply_close_within(supply, INFINITY, text);
    if (supply_status(supply) >= 0)
        supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                     "%s: the program has not read to the end of the data: call supply_skip_rest() if it needs no more",
                     supply->pair.name);
    const supply_status_t status = supply_status(supply);
    snprintf(text, SUPPLY_TEXT_BYTES, "%s",
             supply != NULL && supply->broken.status != SUPPLY_OK ? supply->broken.text : supply_error(supply));
    supply_abort(supply, text);
    return status;
}

supply_status_t supply_status(const supply_t *supply) {
    if (supply == NULL) return SUPPLY_ERROR_MEMORY;
    if (supply->broken.status != SUPPLY_OK) return supply->broken.status;
    return supply->failure.status != SUPPLY_OK ? supply->failure.status : supply->received;
}

supply_status_t supply_abort(supply_t *supply, const char *reason) {
    if (supply == NULL) return SUPPLY_OK;
    if (handle_is_in_child(supply)) return supply_abandon_in_child(supply);
    if (supply->is_open) {
        supply__exports_detach(supply->exports);
        if (supply->is_filled)
            supply->filler.abort(supply->filler.context, reason, &supply->keep_ring);
        else if (supply->at_end_of_data) {
            if (supply->pair.link != NULL) supply__link_finish(supply->pair.link);
            supply__pair_release_all(&supply->pair);
        } else
            supply__pair_stop(&supply->pair, reason ? reason : "the rank failed and did not say why");
    }
    return close_and_free(supply, SUPPLY_OK);
}

supply_status_t supply_abandon_in_child(supply_t *supply) {
    if (supply == NULL) return SUPPLY_OK;
    if (supply->is_open) {
        if (*supply->exports->is_mine) return SUPPLY_ERROR_ARGUMENT;
        /* For streams of the handle. Without the lock: a thread that does not exist here may hold it. */
        supply->exports->supply = NULL;
        supply__exports_drop(supply->exports);
        supply__foreign_files_abandon(&supply->blocks.foreign_files);
        if (supply->is_filled) supply->filler.abandon(supply->filler.context);
        supply__pair_abandon(&supply->pair);
    }
    handle_free(supply);
    return SUPPLY_OK;
}

const char *supply_error(const supply_t *supply) {
    if (supply == NULL) return "out of memory, or supply_open() was given no place for the handle";
    if (supply->failure.status == SUPPLY_OK) return "no failure";
    return supply->failure.text;
}

int supply_error_errno(const supply_t *supply) {
    return supply != NULL && supply->failure.status != SUPPLY_OK ? supply->failure.error : 0;
}

static supply_status_t handle_next(supply_t *supply, supply_block_t *block, bool wait) {
    TRY(supply__check_mine(supply, wait ? "supply_next" : "supply_try_next"));
    if (block == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_next: block must not be NULL");
    if (supply->iterating)
        return supply__fail(
            &supply->failure, SUPPLY_ERROR_ARGUMENT,
            "supply_next: supply_next_datum() is in the middle of a block: call one or the other within "
            "an epoch");
    supply_block_t received;
    const supply_status_t status = supply__receive(supply, &received, wait);
    if (status == SUPPLY_OK || status == SUPPLY_END_OF_EPOCH) *block = received;
    return status;
}

supply_status_t supply_next(supply_t *supply, supply_block_t *block) { return handle_next(supply, block, true); }

supply_status_t supply_try_next(supply_t *supply, supply_block_t *block) { return handle_next(supply, block, false); }

supply_status_t supply_skip_rest(supply_t *supply) {
    supply_status_t status = supply__check_mine(supply, "supply_skip_rest");
    if (status != SUPPLY_OK) return status;
    if (supply->iterating) supply__release_block(supply, supply->iterated.sequence);
    supply->iterating = false;
    supply_block_t block = {0};
    while ((status = supply_next(supply, &block)) == SUPPLY_OK || status == SUPPLY_END_OF_EPOCH)
        if (status == SUPPLY_OK) supply_release(supply, &block);
    return status;
}

supply_status_t supply_release(supply_t *supply, const supply_block_t *block) {
    TRY(supply__check_mine(supply, "supply_release"));
    TRY(supply__check_held(supply, "supply_release", block, true));
    if (supply->iterating && block->sequence == supply->iterated.sequence)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT,
                            "supply_release: supply_next_datum() releases its blocks by itself");
    supply__release_block(supply, block->sequence);
    return SUPPLY_OK;
}

supply_status_t supply_column(supply_t *supply, const supply_block_t *block, int index, supply_column_t *column) {
    TRY(supply__check_held(supply, "supply_column", block, column != NULL));
    TRY(supply__schema_check_index(supply, index));
    return supply__block_column(&supply->blocks, &supply->pair, block->sequence, supply->blocks.schema.columns[index],
                                column, &supply->failure);
}

/* format: with that of the values of a list. supply_value() reads views as bytes. */
static bool has_format(const supply_column_t *column, const char *format) {
    const size_t length = strlen(column->format);
    if (column->views != NULL) return strcmp(format, "z") == 0 || strcmp(format, column->format) == 0;
    return strncmp(format, column->format, length) == 0 && strcmp(format + length, column->child_format) == 0;
}

supply_status_t supply_column_named(supply_t *supply, const supply_block_t *block, const char *name, const char *format,
                                    supply_column_t *column) {
    const int index = supply_column_index(supply, name);
    const supply_status_t status = index < 0 ? (supply_status_t)index : supply_column(supply, block, index, column);
    if (status != SUPPLY_OK || format == NULL || has_format(column, format)) return status;
    return supply__fail(&supply->failure, SUPPLY_ERROR_NO_COLUMN, "%s: column '%s' has the format '%s%s', not '%s'",
                        supply->pair.name, name, column->format, column->child_format, format);
}

supply_status_t supply_column_child(supply_t *supply, const supply_block_t *block, const supply_column_t *column,
                                    int child, supply_column_t *found) {
    TRY(supply__check_held(supply, "supply_column_child", block, column != NULL && found != NULL));
    uint32_t entry;
    TRY(supply__schema_check_child(supply, column->entry, child, &entry));
    return supply__block_column(&supply->blocks, &supply->pair, block->sequence, entry, found, &supply->failure);
}

int supply_fd(const supply_t *supply) {
    return supply != NULL && supply->is_open ? supply->pair.notification_pipe.fd : -1;
}

void supply__hold_end(supply_t *supply) {
    struct link *link = supply__filler_pair(supply)->link;
    if (link != NULL) supply__link_hold_end(link);
}

void supply__fail_link(supply_t *supply, const char *text) {
    struct link *link = supply__filler_pair(supply)->link;
    if (link != NULL) supply__link_fail(link, text);
}

double supply__timeout(const supply_t *supply) {
    return supply != NULL && supply->is_open ? supply->pair.settings.timeout : 0;
}

const void *supply_mapping(const supply_t *supply, size_t *bytes) {
    bool is_open = supply != NULL && supply->is_open;
    if (bytes != NULL) *bytes = is_open ? supply->pair.mapped_file.bytes : 0;
    return is_open ? supply->pair.mapped_file.address : NULL;
}

void supply_statistics(const supply_t *supply, supply_statistics_t *statistics) {
    const supply_statistics_t none = {0};
    *statistics = supply != NULL ? supply->statistics : none;
}

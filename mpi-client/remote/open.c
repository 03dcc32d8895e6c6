/** supply_remote_over(). */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "filler.h"
#include "options.h"
#include "remote.h"
#include "remote_state.h"

static void set_name(struct remote *remote, const struct pair_range *pairs) {
    const char *node = remote->sources[0].node;
    if (pairs->count == 1)
        snprintf(remote->name, sizeof remote->name, "pair %u (fed from node %s)", pairs->first, node);
    else
        snprintf(remote->name, sizeof remote->name, "pairs %u to %u (fed from node %s and others)", pairs->first,
                 pairs->first + pairs->count - 1, node);
}

static supply_status_t make_sources(struct remote *remote, struct failure *failure) {
    const struct pair_range pairs = remote_own_pairs(&remote->processes);
    remote->sources = calloc(pairs.count, sizeof *remote->sources);
    if (remote->sources == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < pairs.count; i++) {
        const supply_status_t status =
            source_init(&remote->sources[i], &remote->link, &remote->processes, pairs.first + i, failure);
        if (status != SUPPLY_OK) return status;
        remote->source_count++;
    }
    set_name(remote, &pairs);
    return SUPPLY_OK;
}

static supply_status_t read_position(const struct remote *remote, const supply_options_t *options,
                                     struct position *start, struct failure *failure) {
    *start = (struct position){0};
    if (options->position == NULL) return SUPPLY_OK;
    if (!supply_position_unpack(options->position, start))
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "options.position is no position");
    if (start->inside && remote->source_count > 1)
        return supply_fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "%s: the position is inside an epoch: with more feeders than ranks, resume from the end of an "
            "epoch",
            remote->name);
    return SUPPLY_OK;
}

/* Asks the feeders to open the pairs. */
static void ask(struct remote *remote, const struct filler_pair *like, const supply_position_t *position) {
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct request_message *request = &remote->sources[i].request;
        request->exchange = like->accepts_exchange;
        request->timeout = remote->timeout;
        request->has_position = position != NULL;
        if (position != NULL) request->position = *position;
        source_ask(&remote->sources[i], REMOTE_OPEN);
    }
}

/* SUPPLY_OK: the pair is open. */
static supply_status_t await_opened(struct remote *remote, struct source *source, int64_t end,
                                    struct failure *failure) {
    const int64_t start = supply_clock_now();
    for (;;) {
        const int64_t now = supply_clock_now();
        const supply_status_t status = source_advance(source, failure);
        if (status != SUPPLY_OK) return status;
        if (source->has_notice) break;
        if (now >= end)
            return supply_fail(
                failure, SUPPLY_ERROR_TIMEOUT,
                "%s: supply-feeder on node %s (process %d of the communicator) has not opened the pair for "
                "%g s: is it stopped? (--timeout / SUPPLY_TIMEOUT)",
                remote->name, source->node, source->feeder, FILLER_LIMIT_FACTOR * remote->timeout);
        if (!remote_pause(remote, start))
            return supply_fail(failure, SUPPLY_INTERRUPTED, "%s: the program interrupted the opening", remote->name);
    }
    if (source->notice->kind == NOTICE_FAILURE) return source_failure(source, failure);
    if (source->notice->kind != NOTICE_OPENED)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s: an unexpected notice of kind %u", remote->name,
                           source->notice->kind);
    if (source->notice->block_bytes > remote->slot_bytes) remote->slot_bytes = source->notice->block_bytes;
    if (source->notice->block_count > remote->capacity) remote->capacity = source->notice->block_count;
    return source_next(source, failure);
}

/* Opens the pairs, and the handle on them. */
static supply_status_t open_remote(struct remote *remote, const supply_options_t *options, struct failure *failure) {
    struct filler_pair like = {.name = remote->name,
                               .rank = remote_own_rank(&remote->processes),
                               .timeout = remote->timeout,
                               .interrupted = remote->interrupted,
                               .interrupted_context = remote->interrupted_context,
                               .accepts_exchange = options->exchange != 0};
    supply_status_t status = read_position(remote, options, &like.start, failure);
    if (status != SUPPLY_OK) return status;
    ask(remote, &like, options->position);
    const int64_t end = supply_clock_after(FILLER_LIMIT_FACTOR * remote->timeout);
    /* All feeders open their pairs at the same time. */
    for (uint32_t i = 0; i < remote->source_count && status == SUPPLY_OK; i++)
        status = source_advance(&remote->sources[i], failure);
    for (uint32_t i = 0; i < remote->source_count && status == SUPPLY_OK; i++)
        status = await_opened(remote, &remote->sources[i], end, failure);
    if (status != SUPPLY_OK) return status;
    if (remote->capacity <= remote->source_count) remote->capacity = remote->source_count + 1;
    remote->arrivals = calloc(remote->capacity, sizeof *remote->arrivals);
    if (remote->arrivals == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    const struct filler filler = remote_filler(remote);
    return supply_filler_open(&remote->handle, &filler, &like, remote->slot_bytes, remote->capacity, failure);
}

static void leave(struct remote *remote, const struct failure *failure) {
    const struct filler filler = remote_filler(remote);
    bool keep;
    filler.abort(remote, failure->text, &keep);
}

supply_status_t supply_remote_over(supply_t **supply, const struct link *link, struct processes *processes,
                                   const supply_options_t *options) {
    struct failure failure = {0};
    *supply = NULL;
    struct remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL) {
        link->free(link->context, false);
        remote_processes_free(processes);
        return SUPPLY_ERROR_MEMORY;
    }
    remote->link = *link;
    remote->processes = *processes;
    *processes = (struct processes){0};
    supply_options_t known;
    supply_status_t status = supply_options_complete(options, &known, &failure);
    if (status == SUPPLY_OK) status = supply_options_timeout(&known, &remote->timeout, &failure);
    remote->interrupted = known.interrupted;
    remote->interrupted_context = known.interrupted_context;
    if (status == SUPPLY_OK) status = make_sources(remote, &failure);
    if (status == SUPPLY_OK) status = open_remote(remote, &known, &failure);
    if (status != SUPPLY_OK) {
        leave(remote, &failure);
        *supply = supply_filler_failed(&failure);
        return status;
    }
    if (link->on_end != NULL) link->on_end(link->context, remote_end, remote);
    *supply = remote->handle;
    return SUPPLY_OK;
}

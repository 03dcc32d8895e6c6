/**
 * A rank's pairs on feeders, as a filler of a handle: opens them, waits for their blocks, and closes them. All of it
 * runs in the thread that uses the handle. It needs no lock; arrivals.c checks what feeders send.
 */
#include "remote.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/wait.h"
#include "api/filler.h"
#include "files/options.h"
#include "remote_state.h"

static void remote_begin_closing(struct remote *remote, const char *reason) {
    remote->is_closing = true;
    remote->close_end = supply__clock_after(FILLER_LIMIT_FACTOR * remote->timeout);
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct source *source = &remote->sources[i];
        const size_t bytes = sizeof source->request.text;
        if (reason != NULL) supply__copy_line(source->request.text, bytes, reason, bytes);
        source_ask(source, reason != NULL ? REMOTE_STOP : REMOTE_CLOSE);
    }
}

/* Drops what arrives for the source. SUPPLY_OK: nothing more will. SUPPLY_AGAIN: not yet. */
static supply_status_t remote_drop_all(struct remote *remote, struct source *source, struct failure *failure) {
    while (!source->is_closed) {
        TRY(source_advance(source, failure));
        if (!source->has_notice) return SUPPLY_AGAIN;
        if (source->notice->kind == NOTICE_CLOSED && remote->close_status == SUPPLY_OK)
            remote->close_status = (supply_status_t)source->notice->status;
        TRY(source_drop(source, remote->slot_bytes, failure));
    }
    return SUPPLY_OK;
}

/* SUPPLY_OK: all pairs are closed. */
static supply_status_t remote_advance_closing(struct remote *remote, struct failure *failure) {
    supply_status_t all = SUPPLY_OK;
    for (uint32_t i = 0; i < remote->source_count; i++) {
        const supply_status_t status = remote_drop_all(remote, &remote->sources[i], failure);
        if (status < 0) return status;
        if (status == SUPPLY_AGAIN) all = SUPPLY_AGAIN;
    }
    /* What the program has not read is still being received. */
    TRY(remote_test_arrivals(remote, failure));
    return all;
}

/* Closes the pairs within `seconds`. reason: NULL at the end of the data. Returns as supply_close_within(). */
static supply_status_t remote_close(struct remote *remote, double seconds, const char *reason) {
    struct failure failure;
    if (remote->has_no_link) return remote->close_status;
    struct wait wait = supply__wait_begin((struct wait_limit){INFINITY, remote->interruption});
    wait.part_end = supply__clock_after(seconds);
    if (!remote->is_closing) remote_begin_closing(remote, reason);
    wait.end = remote->close_end;
    supply_status_t status;
    while ((status = remote_advance_closing(remote, &failure)) == SUPPLY_AGAIN) TRY(supply__wait_more(&wait));
    return status == SUPPLY_OK ? remote->close_status : status;
}

/* supply_abort() gives the feeders this many seconds to receive what is under way. */
#define ABORT_SECONDS 5

static void remote_begin_epoch(struct remote *remote) {
    remote->at_end_of_epoch = false;
    remote->turn = 0;
    remote_ask_for_epoch(remote);
}

/* The source for which the program waits. */
static const struct source *remote_awaited(const struct remote *remote) {
    if (remote->count > 0) return remote_arrival(remote, 0)->source;
    const struct source *source = remote_next_source(remote);
    return source != NULL ? source : &remote->sources[0];
}

static supply_status_t remote_fail_by_silence(const struct remote *remote, double limit, struct failure *failure) {
    const struct source *source = remote_awaited(remote);
    return supply__fail(
        failure, SUPPLY_ERROR_TIMEOUT,
        "%s: supply-feeder on node %s (process %d of the communicator) has sent nothing for %g s, not even "
        "that Spark is slow: is it stopped, or its node not reachable? (--timeout / SUPPLY_TIMEOUT)",
        remote->name, source->node, source->feeder, limit);
}

/* How long the program has waited. If it was away meanwhile, nothing could move, and its wait begins again. */
static int64_t remote_wait_so_far(struct remote *remote, int64_t now) {
    if (remote->waits_since == 0 || now - remote->polled > (int64_t)(remote->timeout * 1e9 / 2))
        remote->waits_since = now;
    remote->polled = now;
    return now - remote->waits_since;
}

static supply_status_t remote_fill_once(struct remote *remote, struct filled *filled, struct failure *failure) {
    TRY(remote_advance(remote, failure));
    return remote_take(remote, filled, failure);
}

static supply_status_t remote_fill(void *context, const struct slot *slot, bool wait, struct filled *filled,
                                   struct failure *failure) {
    (void)slot; /* supply__filler_slot() gave it earlier */
    struct remote *remote = context;
    const double limit = FILLER_LIMIT_FACTOR * remote->timeout;
    if (remote->at_end_of_epoch) remote_begin_epoch(remote);
    struct wait waiting = supply__wait_begin((struct wait_limit){INFINITY, remote->interruption});
    supply_status_t status;
    do {
        const int64_t waited = remote_wait_so_far(remote, supply__clock_now());
        status = remote_fill_once(remote, filled, failure);
        if (status != SUPPLY_AGAIN) break;
        if (waited > (int64_t)(limit * 1e9)) {
            status = remote_fail_by_silence(remote, limit, failure);
            break;
        }
        if (!wait) return SUPPLY_AGAIN;
    } while (supply__wait_more(&waiting) == SUPPLY_OK);
    remote->waits_since = 0;
    remote->at_end_of_epoch = status == SUPPLY_END_OF_EPOCH;
    remote->at_end_of_data = status == SUPPLY_END_OF_DATA;
    return status == SUPPLY_AGAIN ? SUPPLY_INTERRUPTED : status;
}

static supply_status_t remote_learn_schema(void *context, struct failure *failure) {
    struct remote *remote = context;
    const supply_status_t status = remote_advance(remote, failure);
    if (status != SUPPLY_OK || remote->count > 0 || remote->failed.status == SUPPLY_OK) return status;
    /* No block comes any more, and with it no schema. */
    *failure = remote->failed;
    return failure->status;
}

static supply_status_t remote_position(const void *context, const struct position *consumed,
                                       struct position *position) {
    (void)position; /* is that of the pair already */
    const struct remote *remote = context;
    return remote->source_count == 1 || !consumed->inside ? SUPPLY_OK : SUPPLY_ERROR_ARGUMENT;
}

static const supply_t *remote_no_pair(const void *context) {
    (void)context;
    return NULL;
}

static void remote_free_memory(struct remote *remote) {
    for (uint32_t i = 0; i < remote->source_count; i++) source_free(&remote->sources[i]);
    free(remote->sources);
    free(remote->arrivals);
    remote_processes_free(&remote->processes);
    free(remote);
}

/* Contexts that are never freed. They stay reachable by this list, so leak checkers do not report them. */
static struct remote *kept;

/*
 * A feeder that does not answer may still do so: its messages would arrive in memory that is used otherwise. So the
 * context is freed, or kept if operations may use it. *keep: as in struct filler.
 */
static void remote_free(struct remote *remote, bool *keep) {
    bool is_pending = false;
    *keep = false;
    for (uint32_t i = 0; i < remote->source_count; i++) is_pending |= source_is_pending(&remote->sources[i]);
    for (uint32_t i = 0; i < remote->count; i++) *keep |= remote_arrival(remote, i)->receiving != NO_OPERATION;
    is_pending |= *keep;
    remote->transport.free(remote->transport.context, is_pending);
    if (is_pending)
        remote->next_kept = __atomic_exchange_n(&kept, remote, __ATOMIC_ACQ_REL);
    else
        remote_free_memory(remote);
}

static supply_status_t remote_close_within(void *context, double seconds, const char *reason, bool *keep) {
    const supply_status_t status = remote_close(context, seconds, reason);
    if (status <= SUPPLY_OK) remote_free(context, keep);
    return status;
}

/* The feeder waits for what is under way to be received, so this must not be interrupted. */
static void remote_abort(void *context, const char *reason, bool *keep) {
    struct remote *remote = context;
    remote->interruption = (struct interruption){0};
    remote_close(remote, ABORT_SECONDS, reason != NULL ? reason : "the rank failed and did not say why");
    remote_free(remote, keep);
}

/* The program ends its messages without closing the handle: closes the pairs. Nothing uses the transport afterwards. */
static void remote_end(void *context) {
    struct remote *remote = context;
    remote->interruption = (struct interruption){0};
    remote_close(remote, ABORT_SECONDS,
                 remote->at_end_of_data ? NULL : "the rank called MPI_Finalize() without supply_close()");
    remote->has_no_link = true;
}

/* The transport belongs to the parent: MPI must not be called in a child. */
static void remote_abandon(void *context) { remote_free_memory(context); }

/* The handle's filler. */
static struct filler remote_filler(struct remote *remote) {
    return (struct filler){.context = remote,
                           .is_remote_pair = true,
                           .fill = remote_fill,
                           .learn_schema = remote_learn_schema,
                           .position = remote_position,
                           .pair = remote_no_pair,
                           .close = remote_close_within,
                           .abort = remote_abort,
                           .abandon = remote_abandon};
}

static void remote_set_name(struct remote *remote, const struct pair_range *pairs) {
    const char *node = remote->sources[0].node;
    if (pairs->count == 1)
        snprintf(remote->name, sizeof remote->name, "pair %u (fed from node %s)", pairs->first, node);
    else
        snprintf(remote->name, sizeof remote->name, "pairs %u to %u (fed from node %s and others)", pairs->first,
                 pairs->first + pairs->count - 1, node);
}

static supply_status_t remote_make_sources(struct remote *remote, struct failure *failure) {
    const struct pair_range pairs = remote_own_pairs(&remote->processes);
    remote->sources = calloc(pairs.count, sizeof *remote->sources);
    if (remote->sources == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < pairs.count; i++) {
        TRY(source_init(&remote->sources[i], &remote->transport, &remote->processes, pairs.first + i, failure));
        remote->source_count++;
    }
    remote_set_name(remote, &pairs);
    return SUPPLY_OK;
}

static supply_status_t remote_read_position(const struct remote *remote, const supply_options_t *options,
                                            struct position *start, struct failure *failure) {
    *start = (struct position){0};
    if (options->position == NULL) return SUPPLY_OK;
    if (!supply__position_unpack(options->position, start))
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "options.position is no position");
    if (start->inside && remote->source_count > 1)
        return supply__fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "%s: the position is inside an epoch: with more feeders than ranks, resume from the end of an "
            "epoch",
            remote->name);
    return SUPPLY_OK;
}

/* Asks the feeders to open the pairs. */
static void remote_ask(struct remote *remote, const struct filler_pair *like, const supply_position_t *position) {
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
static supply_status_t remote_await_opened(struct remote *remote, struct source *source, struct wait *wait,
                                           struct failure *failure) {
    for (;;) {
        TRY(source_advance(source, failure));
        if (source->has_notice) break;
        const supply_status_t ended = supply__wait_more(wait);
        if (ended == SUPPLY_ERROR_TIMEOUT)
            return supply__fail(
                failure, SUPPLY_ERROR_TIMEOUT,
                "%s: supply-feeder on node %s (process %d of the communicator) has not opened the pair for "
                "%g s: is it stopped? (--timeout / SUPPLY_TIMEOUT)",
                remote->name, source->node, source->feeder, FILLER_LIMIT_FACTOR * remote->timeout);
        if (ended == SUPPLY_INTERRUPTED)
            return supply__fail(failure, SUPPLY_INTERRUPTED, "%s: the program interrupted the opening", remote->name);
    }
    if (source->notice->kind == NOTICE_FAILURE) return source_failure(source, failure);
    if (source->notice->kind != NOTICE_OPENED)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "%s: an unexpected notice of kind %u", remote->name,
                            source->notice->kind);
    if (source->notice->block_bytes > remote->slot_bytes) remote->slot_bytes = source->notice->block_bytes;
    if (source->notice->block_count > remote->capacity) remote->capacity = source->notice->block_count;
    return source_next(source, failure);
}

/* Opens the pairs, and the handle on them. */
static supply_status_t remote_open_pairs(struct remote *remote, const supply_options_t *options,
                                         struct failure *failure) {
    struct filler_pair like = {.name = remote->name,
                               .rank = remote_own_rank(&remote->processes),
                               .timeout = remote->timeout,
                               .interruption = remote->interruption,
                               .accepts_exchange = options->exchange != 0};
    TRY(remote_read_position(remote, options, &like.start, failure));
    remote_ask(remote, &like, options->position);
    struct wait wait =
        supply__wait_begin((struct wait_limit){FILLER_LIMIT_FACTOR * remote->timeout, remote->interruption});
    /* All feeders open their pairs at the same time. */
    for (uint32_t i = 0; i < remote->source_count; i++) TRY(source_advance(&remote->sources[i], failure));
    for (uint32_t i = 0; i < remote->source_count; i++)
        TRY(remote_await_opened(remote, &remote->sources[i], &wait, failure));
    if (remote->capacity <= remote->source_count) remote->capacity = remote->source_count + 1;
    remote->arrivals = calloc(remote->capacity, sizeof *remote->arrivals);
    if (remote->arrivals == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    const struct filler filler = remote_filler(remote);
    return supply__filler_open(&remote->handle, &filler, &like, remote->slot_bytes, remote->capacity, NULL, failure);
}

static void remote_leave(struct remote *remote, const struct failure *failure) {
    const struct filler filler = remote_filler(remote);
    bool keep;
    filler.abort(remote, failure->text, &keep);
}

supply_status_t supply__remote_over(supply_t **supply, const struct transport *transport, struct processes *processes,
                                    const supply_options_t *options) {
    struct failure failure = {0};
    *supply = NULL;
    struct remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL) {
        transport->free(transport->context, false);
        remote_processes_free(processes);
        return SUPPLY_ERROR_MEMORY;
    }
    remote->transport = *transport;
    remote->processes = *processes;
    *processes = (struct processes){0};
    supply_options_t known;
    supply_status_t status = supply__options_complete(options, &known, &failure);
    if (status == SUPPLY_OK) status = supply__options_timeout(&known, &remote->timeout, &failure);
    remote->interruption = (struct interruption){known.interrupted, known.interrupted_context};
    if (status == SUPPLY_OK) status = remote_make_sources(remote, &failure);
    if (status == SUPPLY_OK) status = remote_open_pairs(remote, &known, &failure);
    if (status != SUPPLY_OK) {
        remote_leave(remote, &failure);
        *supply = supply__filler_failed(&failure);
        return status;
    }
    if (transport->on_end != NULL) transport->on_end(transport->context, remote_end, remote);
    *supply = remote->handle;
    return SUPPLY_OK;
}

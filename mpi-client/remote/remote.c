/** The filler of a handle whose pairs are opened by feeders. */
#include <stdlib.h>

#include "filler.h"
#include "poll_pause.h"
#include "remote_state.h"

/* supply_abort() gives the feeders this many seconds to receive what is under way. */
#define ABORT_SECONDS 5

bool remote_pause(const struct remote *remote, int64_t since) {
    if (remote->interrupted != NULL && remote->interrupted(remote->interrupted_context)) return false;
    supply_poll_pause(since);
    return true;
}

static void ask_for_epoch(struct remote *remote) {
    remote->at_end_of_epoch = false;
    remote->turn = 0;
    remote_ask_for_epoch(remote);
}

/* The source for which the program waits. */
static const struct source *awaited(const struct remote *remote) {
    if (remote->count > 0) return remote_arrival(remote, 0)->source;
    const struct source *source = remote_next_source(remote);
    return source != NULL ? source : &remote->sources[0];
}

static supply_status_t fail_by_silence(const struct remote *remote, double limit, struct failure *failure) {
    const struct source *source = awaited(remote);
    return supply_fail(
        failure, SUPPLY_ERROR_TIMEOUT,
        "%s: supply-feeder on node %s (process %d of the communicator) has sent nothing for %g s, not even "
        "that Spark is slow: is it stopped, or its node not reachable? (--timeout / SUPPLY_TIMEOUT)",
        remote->name, source->node, source->feeder, limit);
}

/* How long the program has waited. If it was away meanwhile, nothing could move, and its wait begins again. */
static int64_t wait_so_far(struct remote *remote, int64_t now) {
    if (remote->waits_since == 0 || now - remote->polled > (int64_t)(remote->timeout * 1e9 / 2))
        remote->waits_since = now;
    remote->polled = now;
    return now - remote->waits_since;
}

static supply_status_t fill_once(struct remote *remote, struct filled *filled, struct failure *failure) {
    const supply_status_t status = remote_advance(remote, failure);
    return status == SUPPLY_OK ? remote_take(remote, filled, failure) : status;
}

static supply_status_t fill(void *context, const struct slot *slot, bool wait, struct filled *filled,
                            struct failure *failure) {
    (void)slot; /* supply_filler_slot() gave it earlier */
    struct remote *remote = context;
    const double limit = FILLER_LIMIT_FACTOR * remote->timeout;
    if (remote->at_end_of_epoch) ask_for_epoch(remote);
    const int64_t start = supply_clock_now();
    supply_status_t status;
    do {
        const int64_t waited = wait_so_far(remote, supply_clock_now());
        status = fill_once(remote, filled, failure);
        if (status != SUPPLY_AGAIN) break;
        if (waited > (int64_t)(limit * 1e9)) {
            status = fail_by_silence(remote, limit, failure);
            break;
        }
        if (!wait) return SUPPLY_AGAIN;
    } while (remote_pause(remote, start));
    remote->waits_since = 0;
    remote->at_end_of_epoch = status == SUPPLY_END_OF_EPOCH;
    remote->at_end_of_data = status == SUPPLY_END_OF_DATA;
    return status == SUPPLY_AGAIN ? SUPPLY_INTERRUPTED : status;
}

static supply_status_t learn_schema(void *context, struct failure *failure) { return remote_advance(context, failure); }

static supply_status_t position(const void *context, const struct position *consumed, struct position *position) {
    (void)position; /* is that of the pair already */
    const struct remote *remote = context;
    return remote->source_count == 1 || !consumed->inside ? SUPPLY_OK : SUPPLY_ERROR_ARGUMENT;
}

static const supply_t *pair(const void *context) {
    (void)context;
    return NULL;
}

static supply_status_t close_within(void *context, double seconds, const char *reason, bool *keep) {
    const supply_status_t status = remote_close(context, seconds, reason);
    if (status <= SUPPLY_OK) remote_free(context, keep);
    return status;
}

/* The feeder waits for what is under way to be received, so this must not be interrupted. */
static void abort_now(void *context, const char *reason, bool *keep) {
    struct remote *remote = context;
    remote->interrupted = NULL;
    remote_close(remote, ABORT_SECONDS, reason != NULL ? reason : "the rank failed and did not say why");
    remote_free(remote, keep);
}

void remote_end(void *context) {
    struct remote *remote = context;
    remote->interrupted = NULL;
    remote_close(remote, ABORT_SECONDS,
                 remote->at_end_of_data ? NULL : "the rank called MPI_Finalize() without supply_close()");
    remote->has_no_link = true;
}

static void free_memory(struct remote *remote) {
    for (uint32_t i = 0; i < remote->source_count; i++) source_free(&remote->sources[i]);
    free(remote->sources);
    free(remote->arrivals);
    remote_processes_free(&remote->processes);
    free(remote);
}

/* The link belongs to the parent: MPI must not be called in a child. */
static void abandon(void *context) { free_memory(context); }

struct filler remote_filler(struct remote *remote) {
    return (struct filler){.context = remote,
                           .is_remote_pair = true,
                           .fill = fill,
                           .learn_schema = learn_schema,
                           .position = position,
                           .pair = pair,
                           .close = close_within,
                           .abort = abort_now,
                           .abandon = abandon};
}

/* Contexts that are never freed. The list keeps them from tools that look for leaks. */
static struct remote *kept;

/* A feeder that does not answer may still do so: its messages would arrive in memory that is used otherwise. */
void remote_free(struct remote *remote, bool *keep) {
    bool is_pending = false;
    *keep = false;
    for (uint32_t i = 0; i < remote->source_count; i++) is_pending |= source_is_pending(&remote->sources[i]);
    for (uint32_t i = 0; i < remote->count; i++) *keep |= remote_arrival(remote, i)->receiving != LINK_NONE;
    is_pending |= *keep;
    remote->link.free(remote->link.context, is_pending);
    if (is_pending)
        remote->next_kept = __atomic_exchange_n(&kept, remote, __ATOMIC_ACQ_REL);
    else
        free_memory(remote);
}

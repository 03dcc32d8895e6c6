/**
 * Advances an exchange in a thread of its own, by the same steps as the program's calls. mover->lock covers the
 * exchange. A failure waits for the program's next call. Signals and options.interrupted are for the program's thread.
 */
#include "mover.h"

#include <signal.h>

#include "exchange_state.h"
#include "api/filler.h"

/* Polls that nobody waits for: for a slot that the program holds, and beside a program that polls by itself. */
#define PAUSE_NANOSECONDS 1000000

double exchange_leave_seconds = 0.5;

/* MPI_Finalize(), or the end of Python: nothing may be called any more. */
static void mover_end(void *context) {
    struct exchange *exchange = context;
    exchange_mover_stop(exchange);
    exchange->mover.is_allowed = exchange->mover.moves = false;
}

void exchange_mover_init(struct exchange *exchange) {
    struct mover *mover = &exchange->mover;
    const struct transport *transport = &exchange->collective.transport;
    mover->ready = SUPPLY_AGAIN;
    mover->is_allowed = transport->any_thread && transport->ranks > 1;
    pthread_mutex_init(&mover->lock, NULL);
    pthread_cond_init(&mover->work, NULL);
    if (mover->is_allowed && transport->on_end != NULL) transport->on_end(transport->context, mover_end, exchange);
}

void exchange_mover_free(struct mover *mover) {
    pthread_cond_destroy(&mover->work);
    pthread_mutex_destroy(&mover->lock);
}

/* False: the next block needs a slot that the program holds. */
static bool mover_begin_block(struct exchange *exchange) {
    if (exchange->step != STEP_DELIVER) return true;
    if (!supply__filler_slot_of(exchange->handle, exchange->delivered, &exchange->slot)) return false;
    exchange->step_since = supply__clock_now();
    exchange_continue(exchange);
    return true;
}

/* A forked child must see the mark if it sees anything of the step. */
static void mover_mark(struct mover *mover, bool is_advancing) {
    __atomic_store_n(&mover->is_advancing, is_advancing, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void mover_advance(struct exchange *exchange) {
    struct mover *mover = &exchange->mover;
    mover_mark(mover, true);
    if (mover_begin_block(exchange)) {
        const supply_status_t status = exchange_advance(exchange, &mover->failure);
        /* The limit is for a program that waits. Nothing is lost: the operation is still under way. */
        if (status != SUPPLY_ERROR_TIMEOUT || exchange_is_awaited(exchange)) mover->ready = status;
    }
    mover_mark(mover, false);
}

/* wait: of this step, or of one before. */
static void mover_pause(struct exchange *exchange, struct wait *wait, enum step *step) {
    if (exchange->step != *step) *wait = exchange_wait_in_step(exchange);
    *step = exchange->step;
    wait->interruption = (struct interruption){0};
    wait->spin = 0;
    if (exchange->awaited_at != 0 || exchange->step == STEP_DELIVER) wait->pause = PAUSE_NANOSECONDS;
    pthread_mutex_unlock(&exchange->mover.lock);
    supply__wait_more(wait);
    pthread_mutex_lock(&exchange->mover.lock);
}

static void *mover_run(void *context) {
    struct exchange *exchange = context;
    struct mover *mover = &exchange->mover;
    struct wait wait = {0};
    enum step step = STEP_END; /* in which nobody waits */
    pthread_mutex_lock(&mover->lock);
    while (!mover->ends) {
        const bool moves = mover->moves && mover->ready == SUPPLY_AGAIN;
        if (moves) mover_advance(exchange);
        if (moves && mover->ready == SUPPLY_AGAIN) mover_pause(exchange, &wait, &step);
        if (moves) continue;
        pthread_cond_wait(&mover->work, &mover->lock);
        step = STEP_END;
    }
    pthread_mutex_unlock(&mover->lock);
    return NULL;
}

supply_status_t exchange_mover_take(struct exchange *exchange, struct failure *failure) {
    struct mover *mover = &exchange->mover;
    const supply_status_t status = mover->ready;
    if (status < 0) *failure = mover->failure;
    mover->ready = SUPPLY_AGAIN;
    return status;
}

/* Without one, the program's calls advance the exchange. */
static void mover_start(struct exchange *exchange) {
    struct mover *mover = &exchange->mover;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    mover->ends = false;
    mover->is_running = pthread_create(&mover->thread, NULL, mover_run, exchange) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    mover->moves = mover->is_allowed = mover->is_running;
}

void exchange_mover_permit(struct exchange *exchange, supply_status_t status) {
    struct mover *mover = &exchange->mover;
    const bool may_follow = status == SUPPLY_OK || status == SUPPLY_AGAIN || status == SUPPLY_INTERRUPTED;
    mover->moves = mover->is_allowed && exchange->has_memory && may_follow;
    if (mover->moves && !mover->is_running) mover_start(exchange);
    if (mover->moves) pthread_cond_signal(&mover->work);
}

void exchange_mover_stop(struct exchange *exchange) {
    struct mover *mover = &exchange->mover;
    if (!mover->is_running) return;
    pthread_mutex_lock(&mover->lock);
    mover->ends = true;
    pthread_cond_signal(&mover->work);
    pthread_mutex_unlock(&mover->lock);
    pthread_join(mover->thread, NULL);
    mover->is_running = false;
}

/*
 * The thread may have begun a window that nobody reads. If all ranks leave after the same block, they complete what
 * they have begun, and MPI has nothing left. A rank that has not begun says in the agreement that nothing follows.
 */
void exchange_mover_leave(struct exchange *exchange, const char *reason) {
    if (!exchange->mover.moves || exchange->mover.ready != SUPPLY_AGAIN || exchange->awaited_at != 0) return;
    struct failure failure;
    if (exchange->step == STEP_DELIVER) exchange_continue(exchange);
    if (exchange->step == STEP_GATHER && exchange->failed.status == SUPPLY_OK) {
        supply__fail(&failure, SUPPLY_ERROR_ARGUMENT, "%s", reason);
        exchange_fail_later(exchange, &failure);
    }
    const struct wait_limit limit = {exchange_leave_seconds, {0}};
    struct wait wait = supply__wait_begin(limit);
    enum step step = exchange->step;
    while (exchange_advance(exchange, &failure) == SUPPLY_AGAIN && supply__wait_more(&wait) == SUPPLY_OK) {
        if (exchange->step != step) wait = supply__wait_begin(limit);
        step = exchange->step;
    }
    exchange->mover.moves = false;
}

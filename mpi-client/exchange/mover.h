/**
 * The thread of an exchange: after a block is delivered, it advances the exchange to the next one while the program
 * computes.
 */
#pragma once

#include <pthread.h>

#include "base/failure.h"

struct exchange;

struct mover {
    /** Of the exchange: only its owner advances it. The program's calls hold it, also while they wait; the thread holds
     * it while it advances, not while it pauses. */
    pthread_mutex_t lock;
    pthread_cond_t work; /**< `moves` or `ends` has become true */
    pthread_t thread;
    bool is_allowed; /**< the transport may be called by the thread */
    bool is_running; /**< only the program's thread reads and writes it */
    bool ends;
    bool moves;            /**< the program has asked for a block, or got one, and columns are known */
    bool is_advancing;     /**< a forked child may find the exchange in the middle of a change */
    supply_status_t ready; /**< what the next call of the program returns; SUPPLY_AGAIN: nothing yet */
    struct failure failure;
};

/** The exchange has its transport. There is no thread if the transport does not allow it. */
void exchange_mover_init(struct exchange *exchange);

/** After exchange_mover_stop(). Not in a forked child, whose copy may say that the thread waits. */
void exchange_mover_free(struct mover *mover);

/** What the thread has advanced to, for the program: taken once. SUPPLY_AGAIN: nothing, the caller must advance. */
supply_status_t exchange_mover_take(struct exchange *exchange, struct failure *failure);

/** After a call of the program with that result, with the lock: from now on the thread may advance, or not. */
void exchange_mover_permit(struct exchange *exchange, supply_status_t status);

/** Ends the thread, if there is one, within its pause and one step. */
void exchange_mover_stop(struct exchange *exchange);

/** How long a rank that closes early waits for the others in each step. Tests wait longer: a machine may be busy. */
extern double exchange_leave_seconds;

/** The program closes before the end. reason: why. What this rank has begun with the others ends, if they are quick. */
void exchange_mover_leave(struct exchange *exchange, const char *reason);

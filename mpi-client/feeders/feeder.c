/**
 * The loop of a feeder: lets each of its pairs do what it can, and pauses if none can do anything. A feeder has one
 * thread and no lock; outlet.c checks what ranks send.
 */
#include "feeder.h"

#include <stdio.h>
#include <stdlib.h>

#include "outlet.h"
#include "base/wait.h"

/* A failure of the pair, or why its rank stopped early. */
static void feeder_report(const struct outlet *outlet, void (*log)(const char *line)) {
    char line[sizeof outlet->failure.text + 64];
    const bool has_failed = outlet->failure.status != SUPPLY_OK;
    if (!has_failed && outlet->request.kind != REMOTE_STOP) return;
    snprintf(line, sizeof line, "pair %u: %s%s", outlet->pair,
             has_failed ? "" : "its rank stopped early: ", has_failed ? outlet->failure.text : outlet->request.text);
    log(line);
}

static void feeder_sum_up(const struct outlet *outlets, uint32_t count, void (*log)(const char *line),
                          struct fed *fed) {
    *fed = (struct fed){0};
    for (uint32_t i = 0; i < count; i++) {
        fed->elements += outlets[i].elements;
        fed->bytes += outlets[i].bytes;
        fed->failed += outlets[i].failure.status != SUPPLY_OK;
        if (log != NULL) feeder_report(&outlets[i], log);
    }
}

static bool is_over(const struct outlet *outlet) {
    return outlet->state == OUTLET_CLOSED || outlet->state == OUTLET_ABANDONED;
}

/* A rank that does not receive does not end the pairs of others. */
static supply_status_t check_abandoned(const struct outlet *outlets, uint32_t count, struct failure *failure) {
    for (uint32_t i = 0; i < count; i++)
        if (outlets[i].state == OUTLET_ABANDONED)
            return supply__fail(failure, SUPPLY_ERROR_TIMEOUT, "pair %u: %s", outlets[i].pair, outlets[i].failure.text);
    return SUPPLY_OK;
}

/* Until all pairs are over. */
static supply_status_t feeder_run(struct outlet *outlets, uint32_t count, const supply_options_t *options,
                                  struct failure *failure) {
    struct wait wait =
        supply__wait_begin((struct wait_limit){INFINITY, {options->interrupted, options->interrupted_context}});
    for (;;) {
        bool busy = false, is_open = false;
        for (uint32_t i = 0; i < count; i++) {
            TRY(outlet_advance(&outlets[i], &busy, failure));
            is_open |= !is_over(&outlets[i]);
        }
        if (!is_open) return check_abandoned(outlets, count, failure);
        if (busy) supply__wait_progressed(&wait);
        if (busy ? supply__is_interrupted(&wait.interruption) : supply__wait_more(&wait) == SUPPLY_INTERRUPTED)
            return SUPPLY_INTERRUPTED;
    }
}

supply_status_t supply__feed_over(const struct link *link, const struct processes *processes,
                                  const supply_options_t *options, void (*log)(const char *line), struct fed *fed,
                                  struct failure *failure) {
    const struct pair_range pairs = remote_own_pairs(processes);
    struct outlet *outlets = calloc(pairs.count, sizeof *outlets);
    if (outlets == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    supply_status_t status = SUPPLY_OK;
    for (uint32_t i = 0; i < pairs.count && status == SUPPLY_OK; i++)
        status = outlet_init(&outlets[i], link, processes, pairs.first + i, options, failure);
    if (status == SUPPLY_OK) status = feeder_run(outlets, pairs.count, options, failure);
    feeder_sum_up(outlets, pairs.count, log, fed);
    /* Otherwise operations may still use the memory. */
    if (status == SUPPLY_OK) free(outlets);
    return status;
}

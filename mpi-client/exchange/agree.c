/**
 * Agreements between ranks, over the caller's transport. A state comes from this version of the library on another
 * rank: it is compared, and a text is cut to its length. It runs in the thread that uses the handle, without a lock.
 */
#include "agree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

/* A rank that has not polled for this part of the limit was away. An operation needs more than one poll to complete. */
#define ABSENT_PART 0.5

/* Puts the pair's name in front of the text. */
static supply_status_t collective_name_pair(const struct collective *collective, struct failure *failure) {
    /* supply__fail() takes it from there. */
    errno = failure->error;
    return supply__fail(failure, failure->status, "%s: %s", collective->name, failure->text);
}

void exchange_begin_wait(struct collective *collective) {
    collective->is_extended = false;
    collective->polled = supply__clock_now();
    collective->end = supply__clock_after(collective->limit);
}

static supply_status_t collective_begun(struct collective *collective, supply_status_t status,
                                        struct failure *failure) {
    if (status != SUPPLY_OK) {
        collective->operation = NO_OPERATION;
        return collective_name_pair(collective, failure);
    }
    collective->begun++;
    exchange_begin_wait(collective);
    return SUPPLY_OK;
}

supply_status_t exchange_allgather(struct collective *collective, const void *send, void *receive, size_t bytes,
                                   struct failure *failure) {
    const struct transport *transport = &collective->transport;
    return collective_begun(
        collective, transport->allgather(transport->context, send, receive, bytes, &collective->operation, failure),
        failure);
}

supply_status_t exchange_alltoall(struct collective *collective, const void *send, void *receive, size_t bytes,
                                  struct failure *failure) {
    const struct transport *transport = &collective->transport;
    return collective_begun(
        collective, transport->alltoall(transport->context, send, receive, bytes, &collective->operation, failure),
        failure);
}

supply_status_t exchange_alltoallv(struct collective *collective, const void *send, const struct part *send_parts,
                                   void *receive, const struct part *receive_parts, struct failure *failure) {
    const struct transport *transport = &collective->transport;
    return collective_begun(collective,
                            transport->alltoallv(transport->context, send, send_parts, receive, receive_parts,
                                                 &collective->operation, failure),
                            failure);
}

/*
 * The limit is over. True: not because of the others, so that they get another one, once in an operation. The next one
 * begins also after a failure: a call that waits again has the whole limit.
 */
static bool collective_extend(struct collective *collective, bool was_absent) {
    const bool extends = was_absent && !collective->is_extended;
    collective->end = supply__clock_after(collective->limit);
    collective->is_extended |= extends;
    return extends;
}

supply_status_t exchange_wait(struct collective *collective, bool is_over, struct failure *failure) {
    const int64_t now = supply__clock_now();
    const bool was_absent = (double)(now - collective->polled) > ABSENT_PART * collective->limit * NANOSECONDS;
    collective->polled = now;
    if (is_over) return SUPPLY_OK;
    if (now < collective->end || collective_extend(collective, was_absent)) return SUPPLY_AGAIN;
    return supply__fail(failure, SUPPLY_ERROR_TIMEOUT,
                        "%s: another rank has not taken part in the exchange for %g s: has it stopped reading, or "
                        "died? (--timeout / SUPPLY_TIMEOUT)",
                        collective->name, collective->limit);
}

supply_status_t exchange_poll(struct collective *collective, struct failure *failure) {
    const supply_status_t status = supply__transport_test(&collective->transport, &collective->operation, failure);
    if (status < 0) return collective_name_pair(collective, failure);
    return exchange_wait(collective, status == SUPPLY_OK, failure);
}

supply_status_t exchange_agree_init(struct agree *agree, uint32_t rank, uint32_t ranks, struct failure *failure) {
    *agree = (struct agree){
        .rank = rank,
        .ranks = ranks,
        .all = calloc(ranks, sizeof *agree->all),
        .texts = calloc(ranks, AGREE_TEXT_BYTES),
        .text = calloc(1, AGREE_TEXT_BYTES),
    };
    if (agree->all != NULL && agree->texts != NULL && agree->text != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_agree_free(struct agree *agree) {
    free(agree->all);
    free(agree->texts);
    free(agree->text);
    *agree = (struct agree){0};
}

supply_status_t exchange_agree_begin(struct agree *agree, struct collective *collective, struct failure *failure) {
    agree->is_explaining = false;
    return exchange_allgather(collective, &agree->mine, agree->all, sizeof agree->mine, failure);
}

/* What must be the same. False: the rank does not know it. */
static bool agree_compared(const struct rank_state *state, enum difference kind, uint64_t *value) {
    *value = kind == SETTINGS_DIFFER  ? state->settings
             : kind == COLUMNS_DIFFER ? state->schema
                                      : (uint64_t)state->epoch << 32 | state->window;
    return kind == WINDOWS_DIFFER ? state->epoch != EPOCH_UNKNOWN : *value != 0;
}

/* The first rank that differs from the first one that knows. */
static bool agree_find_other(const struct agree *agree, enum difference kind, uint32_t *one, uint32_t *other) {
    uint64_t first = 0, value;
    *one = agree->ranks;
    for (*other = 0; *other < agree->ranks; (*other)++) {
        if (!agree_compared(&agree->all[*other], kind, &value)) continue;
        if (*one == agree->ranks) {
            *one = *other;
            first = value;
        } else if (value != first) {
            return true;
        }
    }
    return false;
}

/* The lowest rank that failed, or the first two that differ. */
static enum difference agree_find_difference(const struct agree *agree, uint32_t *one, uint32_t *other) {
    for (*one = 0; *one < agree->ranks; (*one)++)
        if (agree->all[*one].status < 0) return FAILED;
    for (enum difference kind = SETTINGS_DIFFER; kind <= WINDOWS_DIFFER; kind++)
        if (agree_find_other(agree, kind, one, other)) return kind;
    return AGREED;
}

/* What another library than this one could send. All ranks have the same states, so all fail. */
static supply_status_t agree_check_states(const struct agree *agree, const char *name, struct failure *failure) {
    for (uint32_t rank = 0; rank < agree->ranks; rank++) {
        const struct rank_state *state = &agree->all[rank];
        const bool has_status =
            (state->status >= SUPPLY_ERROR_NO_SCHEMA && state->status <= SUPPLY_OK) || state->status == SUPPLY_AGAIN;
        const bool has_columns = state->schema != 0 && state->columns != 0 && state->columns <= SCHEMA_ENTRIES_MAX &&
                                 state->text_bytes <= SCHEMA_BYTES_MAX - state->columns * sizeof(struct schema_entry);
        const bool has_none = state->schema == 0 && state->columns == 0 && state->elements == 0;
        if (has_status && (has_columns || has_none) && state->elements <= UINT32_MAX &&
            state->end <= WINDOW_ENDS_DATA && state->neighbours < agree->ranks)
            continue;
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                            "%s: rank %u has sent a state that libsupply_exchange %s does not know: use the same "
                            "library on all ranks",
                            name, rank, supply_version());
    }
    return SUPPLY_OK;
}

static void agree_explain(struct agree *agree, enum difference difference, exchange_describe *describe,
                          const void *context) {
    char text[AGREE_TEXT_BYTES] = "";
    if (difference == WINDOWS_DIFFER)
        snprintf(text, sizeof text, "epoch %u, window %u", agree->mine.epoch, agree->mine.window);
    else
        describe(context, difference, text);
    memset(agree->text, 0, AGREE_TEXT_BYTES);
    supply__copy_line(agree->text, AGREE_TEXT_BYTES, text, sizeof text);
}

static supply_status_t agree_fail(const struct agree *agree, struct failure *failure) {
    static const struct {
        supply_status_t status;
        const char *what;
        const char *advice;
    } kinds[] = {
        [SETTINGS_DIFFER] = {SUPPLY_ERROR_ARGUMENT, "the options of the exchange", "set the same on all ranks"},
        [COLUMNS_DIFFER] = {SUPPLY_ERROR_CONTRACT, "the columns", "supply all ranks from one run"},
        [WINDOWS_DIFFER] =
            {SUPPLY_ERROR_ARGUMENT, "the places in the data",
             "all ranks must open their pairs with positions of the same step, or none; with the policy hash save "
             "positions at the end of an epoch"},
    };
    uint32_t one = 0, other = 0;
    const enum difference difference = agree_find_difference(agree, &one, &other);
    for (uint32_t rank = 0; rank < agree->ranks; rank++) agree->texts[(rank + (size_t)1) * AGREE_TEXT_BYTES - 1] = '\0';
    const char *text = agree->texts + (size_t)one * AGREE_TEXT_BYTES;
    if (difference == FAILED) {
        /* supply__fail() takes it from there. */
        errno = agree->all[one].error;
        return supply__fail(failure, (supply_status_t)agree->all[one].status, "rank %u: %s", one, text);
    }
    return supply__fail(failure, kinds[difference].status, "%s of the ranks differ: rank %u has %s; rank %u has %s: %s",
                        kinds[difference].what, one, text, other, agree->texts + (size_t)other * AGREE_TEXT_BYTES,
                        kinds[difference].advice);
}

supply_status_t exchange_agree_poll(struct agree *agree, struct collective *collective, exchange_describe *describe,
                                    const void *context, struct failure *failure) {
    TRY(exchange_poll(collective, failure));
    if (agree->is_explaining) return agree_fail(agree, failure);
    uint32_t one, other;
    TRY(agree_check_states(agree, collective->name, failure));
    const enum difference difference = agree_find_difference(agree, &one, &other);
    if (difference == AGREED) return SUPPLY_OK;
    agree_explain(agree, difference, describe, context);
    agree->is_explaining = true;
    TRY(exchange_allgather(collective, agree->text, agree->texts, AGREE_TEXT_BYTES, failure));
    return SUPPLY_AGAIN;
}

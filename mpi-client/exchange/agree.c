/**
 * Agreements between ranks, over the caller's transport. A state comes from this version of the library on another
 * rank: it is compared, and a text is cut to its length. Its caller has the exchange's lock.
 */
#include "agree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

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
             : kind == STEPS_DIFFER   ? state->steps
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
    for (enum difference kind = SETTINGS_DIFFER; kind <= STEPS_DIFFER; kind++)
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
        if (has_status && (has_columns || has_none) && state->elements <= UINT32_MAX && state->end <= WINDOW_ENDS_DATA)
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
        [STEPS_DIFFER] =
            {SUPPLY_ERROR_CONTRACT, "the steps",
             "this is a fault of libsupply_exchange: report it with this text, and use the same library on "
             "all ranks"},
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

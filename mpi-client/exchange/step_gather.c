/** The step *gather*. */
#include "exchange_state.h"

#include <string.h>

/* While nothing comes from Spark, the others get a sign of this rank when this part of its time limit is over. */
#define SILENT_PART 0.5

void exchange_fail_later(struct exchange *exchange, const struct failure *failure) {
    exchange->failed = *failure;
    const char *name = exchange->inspected.name;
    if (strncmp(failure->text, name, strlen(name)) == 0) return;
    supply_fail(&exchange->failed, failure->status, "%s: %s", name, failure->text);
    exchange->failed.error = failure->error;
}

static supply_status_t check_position(const struct exchange *exchange, struct failure *failure) {
    const struct exchange_position *start = &exchange->resume.start.exchange;
    if (!start->is_set || start->settings == exchange->fingerprint) return SUPPLY_OK;
    char text[AGREE_TEXT_BYTES];
    exchange_settings_text(&exchange->settings, text, sizeof text);
    return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                       "%s: the position was saved with other options of the exchange, or with another number of ranks "
                       "than %u with %s: open it with the same, or use a position after the end of an epoch",
                       exchange->inspected.name, exchange->round.ranks, text);
}

supply_status_t exchange_use_columns(struct exchange *exchange, struct failure *failure) {
    const struct columns *columns = &exchange->columns;
    if (exchange->has_memory || columns->schema.count == 0) return SUPPLY_OK;
    supply_status_t status = exchange_round_set_columns(&exchange->round, columns, failure);
    if (status == SUPPLY_OK) status = exchange_transfer_set_columns(&exchange->transfer, columns, failure);
    if (status == SUPPLY_OK) status = exchange_slot_init(&exchange->layout, columns, failure);
    if (status != SUPPLY_OK) return status;
    supply_filler_set_schema(exchange->handle, columns->schema.entries, columns->schema.count);
    exchange->has_memory = true;
    return SUPPLY_OK;
}

/* When the first block is there, Spark has stored what the ranks must do. */
static supply_status_t resolve(struct exchange *exchange, struct failure *failure) {
    supply_status_t status = exchange_use_columns(exchange, failure);
    if (status != SUPPLY_OK || exchange->is_resolved || !exchange->columns.is_of_pair) return status;
    status = exchange_settings_resolve(&exchange->settings, &exchange->inspected, failure);
    if (status != SUPPLY_OK) return status;
    exchange->is_resolved = true;
    exchange->fingerprint = exchange_settings_fingerprint(&exchange->settings, (int)exchange->round.ranks);
    return check_position(exchange, failure);
}

static supply_status_t gather(struct exchange *exchange, struct failure *failure) {
    supply_status_t status = exchange_gather(&exchange->gather, &exchange->window, failure);
    if (status == SUPPLY_OK) status = resolve(exchange, failure);
    if (status == SUPPLY_OK) status = exchange_transfer_reserve(&exchange->transfer, exchange->window.bytes, failure);
    if (status != SUPPLY_OK) return status;
    const struct draw draw = {.window = &exchange->window,
                              .rank = exchange->round.rank,
                              .ranks = exchange->round.ranks,
                              .range = &exchange->range};
    return exchange_policy_prepare(&exchange->destinations, &exchange->settings, &exchange->columns, &draw, failure);
}

supply_status_t exchange_gather_window(struct exchange *exchange) {
    if (exchange->is_ready || exchange->failed.status != SUPPLY_OK) return SUPPLY_OK;
    struct failure failure = {0};
    const supply_status_t status = gather(exchange, &failure);
    exchange->is_ready = status == SUPPLY_OK;
    if (status == SUPPLY_AGAIN) return supply_clock_now() >= exchange->gathers_until ? SUPPLY_OK : SUPPLY_AGAIN;
    if (status == SUPPLY_ERROR_SPARK) exchange->spark_has_failed = true;
    if (status < 0) exchange_fail_later(exchange, &failure);
    return SUPPLY_OK;
}

static void state_window(const struct exchange *exchange, struct rank_state *state) {
    state->status = exchange->is_ready || exchange->has_rounds ? SUPPLY_OK : SUPPLY_AGAIN;
    state->epoch = exchange->has_rounds ? exchange->epoch : EPOCH_UNKNOWN;
    if (!exchange->is_ready || exchange->has_rounds) return;
    state->epoch = exchange->window.epoch;
    state->elements = exchange->window.elements;
    state->end = exchange->window.end;
}

supply_status_t exchange_begin_agreement(struct exchange *exchange, struct failure *failure) {
    struct rank_state *state = &exchange->agree.mine;
    *state = (struct rank_state){
        .window = exchange->number,
        .columns = exchange->columns.schema.count,
        .settings = exchange->fingerprint,
        .schema = exchange->columns.fingerprint,
    };
    state_window(exchange, state);
    if (exchange->failed.status != SUPPLY_OK) {
        state->status = exchange->failed.status;
        state->error = exchange->failed.error;
    }
    exchange->step = STEP_AGREE;
    return exchange_agree_begin(&exchange->agree, &exchange->collective, failure);
}

void exchange_await_window(struct exchange *exchange) {
    exchange->gathers_until = supply_clock_after(SILENT_PART * exchange->inspected.timeout);
    exchange->step = STEP_GATHER;
}

void exchange_begin_epoch(struct exchange *exchange) {
    exchange_gather_next_epoch(&exchange->gather);
    exchange_gather_drop(&exchange->gather, &exchange->window);
    exchange->is_ready = false;
    exchange->number = 0;
    exchange->begins_epoch = true;
    exchange->is_over = false;
    exchange_await_window(exchange);
}

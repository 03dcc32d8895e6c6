#include "resume.h"

void exchange_resume_state(const struct resume *resume, struct rank_state *state) {
    const struct exchange_position *exchange = &resume->start.exchange;
    state->epoch = resume->start.epoch;
    state->window = exchange->first;
    state->next = exchange->next;
    state->consumed = exchange->window;
    state->elements = exchange->elements;
}

/* Whether the rank has consumed everything before that window. */
static bool has_consumed(const struct rank_state *state, uint32_t window) {
    return state->consumed >= window || (state->consumed + 1 == window && state->elements == WHOLE_WINDOW);
}

supply_status_t exchange_resume_agree(struct resume *resume, const struct rank_state *all, uint32_t ranks,
                                      struct failure *failure) {
    resume->first = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (rank > 0 && all[rank].window <= resume->first) continue;
        resume->first = all[rank].window;
        resume->next = all[rank].next;
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        if (!has_consumed(&all[rank], resume->first))
            return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                               "the positions of the ranks lie too far apart: rank %u has not consumed window %u, "
                               "another rank begins with window %u: save positions at the same step on all ranks, or "
                               "after the end of an epoch",
                               rank, all[rank].elements == WHOLE_WINDOW ? all[rank].consumed + 1 : all[rank].consumed,
                               resume->first);
    return SUPPLY_OK;
}

uint64_t exchange_resume_consumed(const struct resume *resume, uint32_t epoch, uint32_t window) {
    const struct exchange_position *exchange = &resume->start.exchange;
    if (!exchange->is_set || epoch != resume->start.epoch || window > exchange->window) return 0;
    return window < exchange->window ? WHOLE_WINDOW : exchange->elements;
}

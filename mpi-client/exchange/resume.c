#include "resume.h"

void exchange_resume_state(const struct resume *resume, struct rank_state *state) {
    state->epoch = resume->start.epoch;
    state->window = resume->start.exchange.window;
}

uint64_t exchange_resume_consumed(const struct resume *resume, uint32_t epoch, uint32_t window) {
    const struct exchange_position *exchange = &resume->start.exchange;
    const bool is_of_window = exchange->is_set && epoch == resume->start.epoch && window == exchange->window;
    return is_of_window ? exchange->elements : 0;
}

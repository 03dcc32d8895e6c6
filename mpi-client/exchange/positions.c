/**
 * A ring of the last windows that gave the program something. Finding a position only reads it. Who has the exchange's
 * lock adds to it; the program reads a copy.
 */
#include "positions.h"

uint64_t exchange_positions_consumed(const struct position *start, uint32_t epoch, uint32_t window) {
    const bool is_of_window = start->exchange.is_set && epoch == start->epoch && window == start->exchange.window;
    return is_of_window ? start->exchange.elements : 0;
}

static struct kept_window *positions_add(struct positions *positions, uint32_t epoch) {
    positions->newest = (positions->newest + 1) % POSITIONS_KEPT;
    struct kept_window *kept = &positions->kept[positions->newest];
    *kept = (struct kept_window){.is_used = true, .epoch = epoch, .start = positions->current};
    return kept;
}

void exchange_positions_begin_window(struct positions *positions, uint32_t epoch, const struct window_start *start,
                                     bool is_first) {
    positions->current = *start;
    if (is_first) positions_add(positions, epoch)->is_beginning = true;
}

void exchange_positions_receive(struct positions *positions, uint32_t epoch, uint64_t received, bool is_delivered,
                                bool is_complete) {
    struct kept_window *kept = &positions->kept[positions->newest];
    const bool is_of_window = !kept->is_beginning && kept->start.number == positions->current.number;
    if (is_delivered && !is_of_window) kept = positions_add(positions, epoch);
    if (is_delivered || is_of_window) {
        kept->received = received;
        kept->is_complete = is_complete;
    }
    if (!is_complete) return;
    kept->has_last = true;
    kept->last = positions->current;
}

static const struct kept_window *positions_find(const struct positions *positions, const struct position *consumed) {
    for (uint32_t i = 0; i < POSITIONS_KEPT; i++) {
        const struct kept_window *kept = &positions->kept[i];
        if (kept->is_used && kept->epoch == consumed->epoch && kept->is_beginning == !consumed->inside &&
            (kept->is_beginning || kept->start.number == consumed->partition))
            return kept;
    }
    return NULL;
}

static void positions_fill_in(struct position *position, const struct window_start *start, uint64_t elements,
                              uint64_t settings) {
    const uint64_t plan = position->plan;
    *position = start->pair;
    if (plan != 0) position->plan = plan;
    position->exchange =
        (struct exchange_position){.is_set = true, .window = start->number, .elements = elements, .settings = settings};
}

/* Nothing of the epoch has been received in this run. */
static void positions_find_beginning(const struct kept_window *kept, const struct position *start,
                                     const struct position *consumed, uint64_t settings, struct position *position) {
    const bool resumes = start->epoch == consumed->epoch;
    if (kept != NULL && kept->has_last &&
        (!resumes || !start->exchange.is_set || kept->last.number >= start->exchange.window)) {
        positions_fill_in(position, &kept->last, WHOLE_WINDOW, settings);
    } else if (resumes) {
        const uint64_t plan = position->plan;
        *position = *start;
        if (plan != 0) position->plan = plan;
    }
}

bool exchange_positions_find(const struct positions *positions, const struct position *start,
                             const struct position *consumed, uint64_t settings, struct position *position) {
    const struct kept_window *kept = positions_find(positions, consumed);
    if (!consumed->inside)
        positions_find_beginning(kept, start, consumed, settings, position);
    else if (kept == NULL)
        return false;
    else if (kept->is_complete && consumed->element >= kept->received)
        positions_fill_in(position, &kept->last, WHOLE_WINDOW, settings);
    else
        positions_fill_in(position, &kept->start, consumed->element, settings);
    return true;
}

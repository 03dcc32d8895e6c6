#include "positions.h"

#include <string.h>

static struct kept_window *add(struct positions *positions, uint32_t epoch, uint32_t number) {
    positions->newest = (positions->newest + 1) % POSITIONS_KEPT;
    struct kept_window *kept = &positions->kept[positions->newest];
    *kept = (struct kept_window){.is_used = true, .epoch = epoch, .number = number};
    return kept;
}

void exchange_positions_begin_window(struct positions *positions, uint32_t epoch, const struct window_start *start,
                                     bool is_first) {
    if (is_first) {
        positions->recent_count = 0;
        struct kept_window *beginning = add(positions, epoch, start->number);
        beginning->is_beginning = true;
        beginning->back = *start;
    }
    if (positions->recent_count > WINDOWS_BACK) {
        memmove(&positions->recent[0], &positions->recent[1], WINDOWS_BACK * sizeof positions->recent[0]);
        positions->recent_count--;
    }
    positions->recent[positions->recent_count++] = *start;
}

void exchange_positions_receive(struct positions *positions, uint32_t epoch, uint32_t number, uint64_t received,
                                bool is_delivered, bool is_complete) {
    struct kept_window *kept = &positions->kept[positions->newest];
    const bool is_of_window = kept->number == number && !kept->is_beginning;
    if (is_delivered && !is_of_window) {
        kept = add(positions, epoch, number);
        kept->back = positions->recent[0];
    }
    if (is_delivered || is_of_window) {
        kept->received = received;
        kept->is_complete = is_complete;
    }
    if (!is_complete) return;
    kept->has_last = true;
    kept->last = number;
}

static const struct kept_window *find(const struct positions *positions, const struct position *consumed) {
    for (uint32_t i = 0; i < POSITIONS_KEPT; i++) {
        const struct kept_window *kept = &positions->kept[i];
        if (kept->is_used && kept->epoch == consumed->epoch && kept->is_beginning == !consumed->inside &&
            (kept->is_beginning || kept->number == consumed->partition))
            return kept;
    }
    return NULL;
}

static void fill_in(struct position *position, const struct window_start *back, uint32_t window, uint64_t elements,
                    uint64_t settings) {
    const uint64_t plan = position->plan;
    *position = back->pair;
    if (plan != 0) position->plan = plan;
    position->exchange = (struct exchange_position){.is_set = true,
                                                    .first = back->number,
                                                    .next = back->next,
                                                    .window = window,
                                                    .elements = elements,
                                                    .settings = settings};
}

/* Nothing of the epoch has been received in this run. */
static void find_beginning(const struct kept_window *kept, const struct resume *resume, const struct position *consumed,
                           uint64_t settings, struct position *position) {
    const bool resumes = resume->start.epoch == consumed->epoch;
    const bool is_after_start =
        kept != NULL && kept->has_last &&
        (!resumes || !resume->start.exchange.is_set || kept->last >= resume->start.exchange.window);
    if (is_after_start) {
        fill_in(position, &kept->back, kept->last, WHOLE_WINDOW, settings);
    } else if (resumes) {
        const uint64_t plan = position->plan;
        *position = resume->start;
        if (plan != 0) position->plan = plan;
    }
}

void exchange_positions_find(const struct positions *positions, const struct resume *resume,
                             const struct position *consumed, uint64_t settings, struct position *position) {
    const struct kept_window *kept = find(positions, consumed);
    if (!consumed->inside)
        find_beginning(kept, resume, consumed, settings, position);
    else if (kept == NULL)
        fill_in(position, &(struct window_start){0}, consumed->partition, consumed->element, ~settings);
    else if (kept->is_complete && consumed->element >= kept->received)
        fill_in(position, &kept->back, kept->last, WHOLE_WINDOW, settings);
    else
        fill_in(position, &kept->back, kept->number, consumed->element, settings);
}

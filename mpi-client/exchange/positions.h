/**
 * Positions of an exchange: where windows begin, for blocks that the program still has; and how all ranks continue with
 * the same window, and drop what they have consumed of it.
 */
#pragma once

#include "window.h"

/**
 * How many of the elements that this rank receives in that window the program has consumed in an earlier run. start: at
 * which it has opened the pair.
 */
uint64_t exchange_positions_consumed(const struct position *start, uint32_t epoch, uint32_t window);

/** A program may ask for the position after a block that it has released: one of the last 64 windows that gave it some
 * (supply.h). */
#define POSITIONS_KEPT 64

struct window_start {
    uint32_t number;
    struct position pair;
};

/**
 * A window of which the program has received something, or the beginning of an epoch; and the windows after it that
 * gave the program nothing.
 */
struct kept_window {
    bool is_used;
    bool is_beginning;
    bool is_complete; /**< `received` does not grow any more */
    bool has_last;
    uint32_t epoch;
    uint64_t received; /**< elements, with those of earlier runs */
    struct window_start start;
    struct window_start last; /**< of the last complete window that gave nothing more: this one, or one after it */
};

struct positions {
    struct window_start current;
    struct kept_window kept[POSITIONS_KEPT];
    uint32_t newest;
};

/** All ranks have agreed on a window, the first one of the epoch in this run if is_first. */
void exchange_positions_begin_window(struct positions *positions, uint32_t epoch, const struct window_start *start,
                                     bool is_first);

/**
 * A round of the current window is over. received: elements of the window that have arrived on this rank until now.
 * is_delivered: the program gets some of this round.
 */
void exchange_positions_receive(struct positions *positions, uint32_t epoch, uint64_t received, bool is_delivered,
                                bool is_complete);

/**
 * Adds to *position, which is `consumed`, what a run that resumes needs. settings: their fingerprint. False: the window
 * is remembered no more, so there is no position.
 */
bool exchange_positions_find(const struct positions *positions, const struct position *start,
                             const struct position *consumed, uint64_t settings, struct position *position);

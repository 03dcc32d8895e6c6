/* The program of a rank, what it saves, and how all ranks resume (*Positions*). */

#define FRONT SLOT_OF(me, released[me])
#define IS_BEFORE_POSITION (FRONT.epoch == position_epoch[me] && (FRONT.window < position_window[me] || \
    (FRONT.window == position_window[me] && seen[me] < position_elements[me])))

#if RANKS == 2
#define IS_TAKEN(element) ((got[0] | got[1]) & (element))
#define ALL_HAVE_SAVED (is_saved[0] && is_saved[1])
#else
#define IS_TAKEN(element) ((got[0] | got[1] | got[2]) & (element))
#define ALL_HAVE_SAVED (is_saved[0] && is_saved[1] && is_saved[2])
#endif

/* The first element of the block in front. A run that resumes drops what the run before has consumed. */
inline consume() {
    d_step {
        if
        :: FRONT.window != seen_window[me] -> seen_window[me] = FRONT.window; seen[me] = 0
        :: else
        fi;
        do
        :: !ONE(FRONT.elements, i) -> i++
        :: else -> break
        od;
        if
#ifndef MUTATION_CONSUMED_ELEMENTS_COME_AGAIN
        :: IS_BEFORE_POSITION
#endif
        :: else ->
            assert(!IS_TAKEN(1 << i));
            got[me] = got[me] | (1 << i);
            consumed[me]++;
            position_window[me] = FRONT.window;
            position_elements[me] = seen[me] + 1
        fi;
        seen[me]++;
        FRONT.elements = FRONT.elements & ~(1 << i);
        i = 0;
        if
        :: FRONT.elements == 0 -> FRONT.window = 0; FRONT.epoch = 0; released[me]++
        :: else
        fi
    }
}

inline consume_end() {
    d_step {
        FRONT.is_end = false;
        released[me]++;
        position_epoch[me]++;
        position_window[me] = 0;
        position_elements[me] = 0;
        consumed[me] = 0;
        seen_window[me] = NONE;
        seen[me] = 0
    }
}

/* Windows below this number are over, as far as this rank knows. */
#define FINISHED (position_epoch[me] < epoch[me] -> windows[me * EPOCHS + position_epoch[me]] : finished[me])
#define RECEIVED(window) received[AT(me, position_epoch[me], window)]

/* The position steps over windows that had nothing for this rank, but `first` does not. */
inline save() {
    d_step {
#ifdef MUTATION_A_RUN_THAT_CONSUMES_NOTHING_FORGETS_ITS_POSITION
        position_window[me] = (consumed[me] -> position_window[me] : 0);
        position_elements[me] = (consumed[me] -> position_elements[me] : 0);
#endif
        w = position_window[me];
        n = position_elements[me];
        do
        :: w < FINISHED && n == RECEIVED(w) -> n = WHOLE
#ifndef MUTATION_A_POSITION_STAYS_AT_AN_EMPTY_WINDOW
        :: n == WHOLE && w + 1 < FINISHED && RECEIVED(w + 1) == 0 -> w++
#endif
        :: else -> break
        od;
#ifdef MUTATION_A_POSITION_IS_PLAIN_BEFORE_THE_END
        if
        :: epoch[me] > position_epoch[me] && w + 1 == FINISHED && n == WHOLE -> position_epoch[me]++; w = 0; n = 0
        :: else
        fi;
#endif
        saved[me].epoch = position_epoch[me];
        saved[me].window = w;
        saved[me].elements = n;
        w = (position_window[me] > LAG -> position_window[me] - LAG : 0);
        w = (position_epoch[me] == epoch[me] && w < oldest[me] -> oldest[me] : w);
        saved[me].first = w;
        if
        :: position_epoch[me] < EPOCHS ->
            saved[me].at = begin[AT(me, position_epoch[me], w)];
            saved[me].first_next = next_at[AT(me, position_epoch[me], w)]
        :: else -> saved[me].at = EPOCHS * MOST; saved[me].first_next = me
        fi;
#ifdef MUTATION_AN_EMPTY_WINDOW_BEGINS_IN_THE_NEXT_EPOCH
        saved[me].epoch = saved[me].epoch + (w > 0 && saved[me].at == position_epoch[me] * MOST + count[me] -> 1 : 0);
#endif
        saved[me].got = got[me];
        is_saved[me] = true;
        is_crashed = ALL_HAVE_SAVED;
        w = 0;
        n = 0
    }
}

#if STEPS
#define IS_TO_SAVE (MAY_SAVE && !is_saved[me] && position_epoch[me] == step_epoch && consumed[me] == step)
#else
#define IS_TO_SAVE (MAY_SAVE && !is_saved[me])
#endif

proctype Program(byte me) {
    byte i, n, w;
    {
        do
        :: IS_TO_SAVE -> save()
        :: atomic { released[me] < published[me] && !FRONT.is_end ->
            do
            :: consume();
                if
                :: MAY_SAVE || released[me] == published[me] || FRONT.is_end -> break
                :: else
                fi
            od
        }
        :: atomic { released[me] < published[me] && FRONT.is_end && !(STEPS && IS_TO_SAVE) -> consume_end() }
        :: atomic { outcome[me] != RUNNING && (outcome[me] != DONE || released[me] == published[me]) -> break }
        od
    } unless { is_crashed }
}

/* This rank opens its pair with its position. */
inline open_pair() {
    got[me] = saved[me].got;
    position_epoch[me] = saved[me].epoch;
    position_window[me] = saved[me].window;
    position_elements[me] = saved[me].elements;
    seen_window[me] = NONE;
    seen[me] = 0;
    epoch[me] = saved[me].epoch;
    upcoming[me] = saved[me].first;
    oldest[me] = saved[me].first;
    finished[me] = 0;
    element[me] = saved[me].at;
    begin_upcoming[me] = saved[me].at;
    released_blocks[me] = element[me] / BLOCK;
    next[me] = saved[me].first_next
}

inline drop_window() {
    remember();
    do
    :: !is_closed[me] -> gather_element()
    :: else -> break
    od;
#ifndef MUTATION_A_DROPPED_WINDOW_IS_NOT_DEALT
    next[me] = (next[me] + COUNT(gathered[me])) % RANKS;
#endif
#ifdef MUTATION_A_FINISHED_WINDOW_IS_NOT_DROPPED
    element[me] = begin_upcoming[me];
#endif
#ifdef MUTATION_DROPPED_WINDOWS_MUST_NOT_END_THE_EPOCH
    is_refused = is_refused || has_ended[me];
#endif
    gathered[me] = 0;
    is_closed[me] = has_ended[me];
    begin_upcoming[me] = element[me];
    upcoming[me]++;
    release_blocks()
}

/* From the highest `first` on all exchange as before. A rank with an earlier one gathers the windows up to there, and drops them. */
inline resume_together() {
    common = saved[0].first;
    do
    :: me < RANKS ->
#ifdef MUTATION_THE_LOWEST_FIRST_COUNTS
        common = (saved[me].first < common -> saved[me].first : common);
#else
        common = (saved[me].first > common -> saved[me].first : common);
#endif
#ifndef MUTATION_EPOCHS_ARE_NOT_COMPARED
        is_refused = is_refused || saved[me].epoch != saved[0].epoch;
#endif
        me++
    :: else -> break
    od;
    me = 0;
    do
    :: me < RANKS ->
#ifndef MUTATION_A_LOSS_IS_NOT_REFUSED
        is_refused = is_refused || (saved[me].elements == WHOLE -> saved[me].window + 1 : saved[me].window) < common;
#endif
        me++
    :: else -> break
    od;
    me = 0;
    do
    :: me < RANKS && epoch[me] < EPOCHS && !is_refused ->
        do
        :: upcoming[me] < common -> drop_window()
        :: else -> break
        od;
        remember();
        me++
    :: else -> break
    od;
    me = 0; common = 0; m = 0
}

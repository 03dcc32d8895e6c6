/* The program of a rank, what it saves, and how all ranks resume (*Positions*). */

#define FRONT SLOT_OF(me, released[me])
#define HAS_SAVED(rank) is_saved[rank]
#define HAS_TAKEN_BIT(rank) ONE(consumed[rank].got, i)

/* The first element of the block in front. */
inline take() {
    d_step {
        do
        :: !ONE(FRONT.elements, i) -> i++
        :: else -> break
        od;
        assert(!SOME(HAS_TAKEN_BIT));
        consumed[me].got = consumed[me].got | (1 << i);
        taken[me]++;
        FRONT.first_element++;
        consumed[me].window = FRONT.window;
        consumed[me].elements = FRONT.first_element;
        FRONT.elements = FRONT.elements & ~(1 << i);
        i = 0;
        if
        :: FRONT.elements == 0 -> FRONT.window = 0; FRONT.epoch = 0; FRONT.first_element = 0; released[me]++
        :: else
        fi
    }
}

inline take_end() {
    d_step {
        FRONT.is_end = false;
        released[me]++;
        consumed[me].epoch++;
        consumed[me].window = 0;
        consumed[me].elements = 0;
        taken[me] = 0
    }
}

/* Windows below this number are over, as far as this rank knows. */
#define FINISHED (consumed[me].epoch < epoch[me] -> windows[me * EPOCHS + consumed[me].epoch] : number[me])
#define RECEIVED(window) received[AT(me, consumed[me].epoch, window)]
/* With `all` the windows that all ranks name are the same, so one that gives this rank nothing stays in front of it. */
#ifdef MUTATION_AN_EMPTY_WINDOW_COUNTS_AS_CONSUMED
#define IS_COMPLETE(window) ((window) < FINISHED)
#else
#define IS_COMPLETE(window) ((window) < FINISHED && (HASH || RECEIVED(window)))
#endif

/* As exchange_positions_find(). */
inline save() {
    d_step {
        w = consumed[me].window;
        n = consumed[me].elements;
#ifdef MUTATION_A_RUN_THAT_CONSUMES_NOTHING_FORGETS_ITS_POSITION
        w = (taken[me] -> w : 0);
        n = (taken[me] -> n : 0);
#endif
        do
        :: IS_COMPLETE(w) && n == RECEIVED(w) -> n = WHOLE
        :: n == WHOLE && IS_COMPLETE(w + 1) && RECEIVED(w + 1) == 0 -> w++
        :: else -> break
        od;
        saved[me].epoch = consumed[me].epoch;
#ifdef MUTATION_A_POSITION_IS_PLAIN_BEFORE_THE_END
        if
        :: epoch[me] > consumed[me].epoch && w + 1 == FINISHED && n == WHOLE -> saved[me].epoch++; w = 0; n = 0
        :: else
        fi;
#endif
        saved[me].window = w;
        saved[me].elements = n;
        saved[me].at = (saved[me].epoch < EPOCHS -> begin[AT(me, saved[me].epoch, w)] : EPOCHS * MOST);
#ifdef MUTATION_AN_EMPTY_WINDOW_BEGINS_IN_THE_NEXT_EPOCH
        saved[me].epoch = saved[me].epoch + (w > 0 && saved[me].at == consumed[me].epoch * MOST + count[me] -> 1 : 0);
#endif
        saved[me].got = consumed[me].got;
        is_saved[me] = true;
        is_crashed = ALL(HAS_SAVED);
        w = 0;
        n = 0
    }
}

#define IS_TO_SAVE (MAY_SAVE && !is_saved[me] && (!STEPS || (consumed[me].epoch == step_epoch && taken[me] == step)))

proctype Program(byte me) {
    byte i, n, w;
    {
        do
        :: IS_TO_SAVE -> save()
        :: atomic { released[me] < published[me] && !FRONT.is_end ->
            do
            :: take();
                if
                :: MAY_SAVE || released[me] == published[me] || FRONT.is_end -> break
                :: else
                fi
            od
        }
        :: atomic { released[me] < published[me] && FRONT.is_end && !(STEPS && IS_TO_SAVE) -> take_end() }
        :: atomic { outcome[me] != RUNNING && (outcome[me] != DONE || released[me] == published[me]) -> break }
        od
    } unless { is_crashed }
}

inline copy_position(to, from) {
    to.epoch = from.epoch; to.window = from.window; to.elements = from.elements; to.at = from.at; to.got = from.got
}

/* This rank opens its pair with its position. */
inline open_pair() {
    copy_position(resume[me], saved[me]);
    copy_position(consumed[me], saved[me]);
    if
    :: saved[me].epoch < EPOCHS -> begin[AT(me, saved[me].epoch, saved[me].window)] = saved[me].at
    :: else
    fi;
    epoch[me] = saved[me].epoch;
    number[me] = saved[me].window;
    element[me] = saved[me].at;
    released_blocks[me] = element[me] / BLOCK
}

/* What exchange_resume_state() says must be the same on all ranks. */
inline resume_together() {
    do
    :: me < RANKS ->
#ifndef MUTATION_EPOCHS_ARE_NOT_COMPARED
        is_refused = is_refused || saved[me].epoch != saved[0].epoch;
#endif
#ifndef MUTATION_WINDOWS_ARE_NOT_COMPARED
        is_refused = is_refused || saved[me].window != saved[0].window;
#endif
        me++
    :: else -> break
    od;
    me = 0
}

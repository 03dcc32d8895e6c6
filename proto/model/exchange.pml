/*
 * The exchange between ranks, checked by spin: a model of its own. Ranks exchange windows in any order of their steps, save their
 * positions, all crash, and resume, as in mpi-client/exchange. `check` compares the steps named here with those of exchange_state.h.
 */
#ifndef RANKS
#define RANKS 2             /* or 3 */
#endif
#ifndef NODE
#define NODE 1              /* ranks of a node: neighbours. They send messages to the others */
#endif
#ifndef MOST
#define MOST 2              /* elements that a rank has in an epoch, at most; smaller numbers are tried, too */
#endif
#ifndef EPOCHS
#define EPOCHS 1
#endif
#ifndef WINDOW
#define WINDOW 2            /* bytes of a window. An element has 1 byte, and at most one element of the run has 2, as a slot */
#endif
#ifndef HASH
#define HASH 0              /* 1: each element has a destination of its own, any; 2: rank 0; 0: the policy `all` */
#endif
#ifndef RUNS
#define RUNS 1              /* all but the last one crash when all ranks have saved */
#endif
#ifndef STEPS
#define STEPS 0             /* 1: all ranks save when each of them has consumed the same number of elements of an epoch; 0: anywhere */
#endif
#include "exchange_common.pml"
#define SLOT 2              /* bytes that one of two slots holds */
/* Steps with a collective. STEP_GATHER, STEP_COPY, STEP_ARRIVE, STEP_DELIVER and STEP_END have none. STEP_OPEN is begin_run(). STEP_MEET,
 * STEP_LINK, STEP_BOARDS, STEP_RAILS, STEP_SAMPLE and STEP_COLUMNS come before the first round, and change nothing in it. */
mtype = { STEP_AGREE, STEP_OFFER, STEP_GRANT, STEP_MOVE };
mtype = { FITS, LESS, NEXT, NOTHING };              /* what a rank grants, or offers */
mtype = { ENDS_ALONE, COPIES_BEFORE_PLACE, ARRIVES_BEFORE_COPY, OWN_ROUNDS, GRANT_IS_IGNORED, GRANT_IS_LEFT_OUT, ONE_ROUND, OWN_GRANT,
    NOT_LEVELLED, NO_PARTS, NOTHING_IS_COPIED, RING_HOLDS_WINDOW, SLOT_IS_REUSED, GATHERS_PAST_END, OWN_WAIT, LEAVES, FREES_BUFFERS,
    COMES_AGAIN, WINDOWS_DIFFER, EPOCHS_DIFFER, FORGETS_POSITION, PLAIN_BEFORE_END, EMPTY_IS_CONSUMED, EMPTY_IS_IN_NEXT_EPOCH,
    ROUNDS, PARTS, NOTHING_ARRIVES };
#define ALL(holds) (holds(0) && holds(1) && holds(RANKS - 1))
#define SOME(holds) (holds(0) || holds(1) || holds(RANKS - 1))
#define UNION(sets) (sets[0] | sets[1] | sets[RANKS - 1])
#define PER_RANK (EPOCHS * MOST)
#define BITS (RANKS * PER_RANK)             /* at most 12 */
#define ONE(set, bit) (((set) >> (bit)) & 1)
#define FOUR(set, bit) (ONE(set, bit) + ONE(set, bit + 1) + ONE(set, bit + 2) + ONE(set, bit + 3))
#define COUNT(set) (FOUR(set, 0) + FOUR(set, 4) + FOUR(set, 8))
#define BYTES(set) (COUNT(set) + (((set) & large) != 0))
#define WINDOWS (RANKS * (EPOCHS + 1) * (MOST + 2))
#define AT(epoch, window) ((me * (EPOCHS + 1) + (epoch)) * (MOST + 2) + (window))
#define WHOLE 254
/* The data, the same in all runs. Sets of elements are masks. */
byte count[RANKS]; int large, keys;
/* What ranks have told each other: in agree, where one may begin the next while others read; and later. */
typedef Said { byte epoch; byte window; byte elements; bool has_ended; bool has_failed; bool is_not_ready };
Said said[2 * RANKS];
#define SAID(rank) said[begun[me] % 2 * RANKS + (rank)]
mtype grant[RANKS];
int drawn[RANKS], mine[RANKS];      /* elements for a rank; of its window, without those that are copied or in messages */
int offered[RANKS], less[RANKS], next[RANKS];       /* in this round; what it takes instead, and in the next round */
bool is_left[RANKS];                /* it has others for later rounds */
byte placed[RANKS], copied[RANKS];  /* words in its ring: the round for which it has named a slot; neighbours that have copied into that */
int arrived[RANKS];                 /* in the slot */
/* For positions: each rank's window, where windows begin in the pair, what has been received of them, and how many an epoch had. */
byte epoch[RANKS], number[RANKS], begins[WINDOWS], received[WINDOWS], windows[RANKS * (EPOCHS + 1)];
typedef Position { byte epoch; byte window; byte elements; byte at; int got };
Position consumed[RANKS], saved[RANKS];
byte taken[RANKS], step, step_epoch, run_number;    /* taken: elements of the epoch, in this run */
bool is_saved[RANKS], is_crashed, is_refused;
/* The second ring. */
typedef Slot { int elements; byte window; byte first_element; bool is_end };
Slot slot[RANKS * 2];
byte published[RANKS], released[RANKS];
#define SLOT_OF(number) slot[me * 2 + (number) % 2]
#define HAS_SLOT (published[me] - released[me] < 2)
bool is_stalled[RANKS], is_freed[RANKS]; hidden int m;
#include "exchange_program.pml"
#include "exchange_rank.pml"
/* Nothing is left of a run that crashed. Ranks open their pairs with their positions: exchange_agree_on_opening(). */
inline begin_run() {
    for (i : 0 .. WINDOWS - 1) { begins[i] = 0; received[i] = 0 }
    for (i : 0 .. RANKS * 2 - 1) { slot[i].elements = 0; slot[i].window = 0; slot[i].first_element = 0; slot[i].is_end = false }
    for (me : 0 .. RANKS - 1) {
        begun[me] = 0; kind[me] = 0; drawn[me] = 0; mine[me] = 0; offered[me] = 0; is_left[me] = false; grant[me] = 0; less[me] = 0;
        next[me] = 0; placed[me] = 0; copied[me] = 0; arrived[me] = 0; published[me] = 0; released[me] = 0; taken[me] = 0;
        is_saved[me] = false; is_gone[me] = false; ended_at[me] = 0; outcome[me] = RUNNING; cause[me] = NONE;
        consumed[me].epoch = saved[me].epoch; consumed[me].window = saved[me].window; consumed[me].elements = saved[me].elements;
        consumed[me].at = saved[me].at; consumed[me].got = saved[me].got;
        epoch[me] = saved[me].epoch; number[me] = saved[me].window; begins[AT(epoch[me], number[me])] = saved[me].at;
        is_refused = is_refused || (saved[me].epoch != saved[0].epoch && !IS(EPOCHS_DIFFER)) ||
            (saved[me].window != saved[0].window && !IS(WINDOWS_DIFFER))
    }
    is_crashed = false; me = 0;
    assert(!is_refused || !STEPS)
}
/* Each element of the ended epochs has been taken once: take_element() asserts that it is not taken twice. */
inline check_end() {
    m = consumed[0].got | consumed[1].got | consumed[RANKS - 1].got;
    for (i : 0 .. BITS - 1) { assert(has_lost || outcome[0] != DONE || ONE(m, i) == (i % MOST < count[i / PER_RANK])) }
    check_together()
}
init {
    byte a, me;
    atomic {
        do :: me < RANKS -> select (a : (HASH == 1 -> MOST : 0) .. MOST); count[me] = a; me++ :: else -> me = 0; break od;
        select (keys : 0 .. (HASH == 1 -> (1 << BITS) - 1 : 0));
        select (a : 0 .. (WINDOW > 1 -> BITS : 0));
        large = (WINDOW > 1 && a < BITS -> 1 << a : 0); a = 0
    };
    do
    :: run_number < RUNS ->
        atomic {
            d_step { begin_run() };
            WHEN(is_refused, break);
            WHEN(STEPS && MAY_SAVE, select (step : 0 .. RANKS * MOST); select (step_epoch : 0 .. EPOCHS - 1));
            do :: me < RANKS -> run Rank(me); me++ :: else -> me = 0; break od
        };
        atomic { _nr_pr == 1; if :: is_crashed -> run_number++ :: else -> d_step { check_end() }; break fi }
    :: else -> break
    od
}

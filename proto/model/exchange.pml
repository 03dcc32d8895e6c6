/*
 * The exchange between ranks, checked by spin: a model of its own. Ranks exchange windows in any order of their steps, save their
 * positions, all crash, and resume, as in mpi-client/exchange. `check` compares the steps named here with those of exchange_state.h.
 * Settings, each -DNAME=NUMBER:
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
#ifndef FAULTS
#define FAULTS 0            /* times that a rank waits for Spark, fails, dies, or does not come until the others have left */
#endif
#ifndef FIND
#define FIND 0              /* a mistake, or a good end for which an assertion fails */
#endif
#define SLOT 2              /* bytes that a slot holds */
#define SLOTS 2

/* Steps with a collective. STEP_GATHER, STEP_COPY, STEP_ARRIVE, STEP_DELIVER and STEP_END have none. STEP_OPEN is begin_run(). STEP_MEET,
 * STEP_LINK, STEP_SAMPLE and STEP_COLUMNS come before the first round, and change nothing in it. */
mtype = { STEP_AGREE, STEP_OFFER, STEP_GRANT, STEP_MOVE };
mtype = { FITS, LESS, NEXT, NOTHING };              /* what a rank grants, or offers */
mtype = { RUNNING, DONE, FAILED, DIED, LIMIT };     /* how it ends */
mtype = { ENDS_ALONE, COPIES_BEFORE_PLACE, ARRIVES_BEFORE_COPY, OWN_ROUNDS, GRANT_IS_IGNORED, GRANT_IS_LEFT_OUT, ONE_ROUND, OWN_GRANT,
    NOT_LEVELLED, NO_PARTS, NOTHING_IS_COPIED, RING_HOLDS_WINDOW, SLOT_IS_REUSED, GATHERS_PAST_END, OWN_WAIT, LEAVES, FREES_BUFFERS,
    COMES_AGAIN, WINDOWS_DIFFER, EPOCHS_DIFFER, FORGETS_POSITION, PLAIN_BEFORE_END, EMPTY_IS_CONSUMED, EMPTY_IS_IN_NEXT_EPOCH,
    ROUNDS, PARTS, NOTHING_ARRIVES };

#define IS(mistake) (FIND == mistake)
#define WHEN(condition, action) if :: condition -> action :: else fi
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
#define NONE 255
#define WHOLE 254

/* The data, the same in all runs. Sets of elements are masks. */
byte count[RANKS];
int large, keys;

/* What ranks have told each other: in agree, where one may begin the next while others read; and later. */
typedef Said { byte epoch; byte window; byte elements; bool has_ended; bool has_failed; bool is_not_ready };
Said said[2 * RANKS];
#define SAID(rank) said[begun[me] % 2 * RANKS + (rank)]
byte begun[RANKS];                  /* collectives */
mtype kind[RANKS], grant[RANKS];
int drawn[RANKS];                   /* elements of all ranks that go to this one */
int mine[RANKS];                    /* of this one's window, without those that are copied or in messages */
int offered[RANKS];                 /* of these, in this round */
bool is_left[RANKS];                /* others come in later rounds */
int less[RANKS], next[RANKS];       /* what this rank takes instead, and in the next round */
byte placed[RANKS];                 /* the round for which this rank has named a slot: a word in its ring */
byte copied[RANKS];                 /* neighbours that have copied into the slot: words in its table */
int arrived[RANKS];                 /* in it */

/* For positions: each rank's window, where windows begin in the pair, what has been received of them, and how many an epoch had. */
byte epoch[RANKS], number[RANKS], begins[WINDOWS], received[WINDOWS], windows[RANKS * (EPOCHS + 1)];
typedef Position { byte epoch; byte window; byte elements; byte at; int got };
Position consumed[RANKS], saved[RANKS];
byte taken[RANKS], step, step_epoch, run_number;    /* taken: elements of the epoch, in this run */
bool is_saved[RANKS], is_crashed, is_refused;

/* The second ring. */
typedef Slot { int elements; byte window; byte first_element; bool is_end };
Slot slot[RANKS * SLOTS];
byte published[RANKS], released[RANKS];
#define SLOT_OF(number) slot[me * SLOTS + (number) % SLOTS]
#define HAS_SLOT (published[me] - released[me] < SLOTS)

mtype outcome[RANKS];
byte cause[RANKS], ended_at[RANKS], faults;
bool is_gone[RANKS], is_stalled[RANKS], is_freed[RANKS], has_lost;
hidden byte i, j, k, n;             /* in one step */
hidden int m;

#include "exchange_program.pml"
#include "exchange_rank.pml"

/* Nothing is left of a run that crashed. Ranks open their pairs with their positions: exchange_agree_on_opening(). */
inline begin_run() {
    for (i : 0 .. WINDOWS - 1) { begins[i] = 0; received[i] = 0 }
    for (i : 0 .. RANKS * SLOTS - 1) { slot[i].elements = 0; slot[i].window = 0; slot[i].first_element = 0; slot[i].is_end = false }
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
    for (i : 0 .. RANKS - 1) {
        assert(!IS(outcome[i]) && (outcome[i] == DONE || faults));
        assert(has_lost || (outcome[i] == outcome[0] && cause[i] == cause[0] && ended_at[i] == ended_at[0]))
    }
    m = 0
}

init {
    byte a, me;
    atomic {
        do :: me < RANKS -> select (a : (HASH == 1 -> MOST : 0) .. MOST); count[me] = a; me++ :: else -> me = 0; break od;
        select (a : 0 .. (WINDOW > 1 -> BITS : 0));
        large = (WINDOW > 1 && a < BITS -> 1 << a : 0); a = 0;
        do :: HASH == 1 && a < BITS -> a++ :: HASH == 1 && a < BITS -> keys = keys | (1 << a); a++ :: else -> a = 0; break od
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

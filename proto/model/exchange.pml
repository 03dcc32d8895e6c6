/*
 * The exchange between ranks, checked by spin: a model of its own. Ranks exchange windows in any order of their steps, save their
 * positions, all crash, and resume, as in mpi-client/exchange. `check` compares the steps named here with those of exchange_state.h.
 */

/* Settings, each -DNAME=NUMBER. */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef MOST
#define MOST 2              /* elements that a rank has in an epoch, at most; smaller numbers are tried, too */
#endif
#ifndef EPOCHS
#define EPOCHS 1
#endif
#ifndef WINDOW
#define WINDOW 2            /* bytes of a window. An element has 1 byte, and at most one element of the run has 2 */
#endif
#ifndef SLOT
#define SLOT 2              /* bytes that a slot holds */
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef BLOCK
#define BLOCK 2             /* elements of a block in the ring of the pair, which holds one block */
#endif
#ifndef HASH
#define HASH 0              /* 1: each element has a destination of its own, any; 2: rank 0; 0: the policy `all` */
#endif
#ifndef NEIGHBOURS
#define NEIGHBOURS 0        /* 1: each rank copies its elements into the slots of all; 0: it packs messages */
#endif
#ifndef RUNS
#define RUNS 1              /* all but the last one crash when all ranks have saved */
#endif
#ifndef STEPS
#define STEPS 0             /* 1: all ranks save when each of them has consumed the same number of elements of an epoch; 0: anywhere */
#endif
#ifndef WAITS
#define WAITS 0             /* times that a rank takes part in agree while it waits for Spark */
#endif
#ifndef FAILURES
#define FAILURES 0          /* ranks that fail, in gather or draw */
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef STALLS
#define STALLS 0            /* ranks that do not come until the others have left */
#endif

#define PER_RANK (EPOCHS * MOST)
#define BITS (RANKS * PER_RANK)             /* at most 12 */
#define BIT(owner, element) (1 << ((owner) * PER_RANK + (element)))
#define ONE(elements, bit) (((elements) >> (bit)) & 1)
#define COUNT(m) (ONE(m, 0) + ONE(m, 1) + ONE(m, 2) + ONE(m, 3) + ONE(m, 4) + ONE(m, 5) + ONE(m, 6) + ONE(m, 7) + ONE(m, 8) + \
    ONE(m, 9) + ONE(m, 10) + ONE(m, 11))
#define BYTES(elements) (COUNT(elements) + (((elements) & large) -> 1 : 0))
#define WINDOWS (MOST + 2)
#define AT(rank, epoch, window) (((rank) * EPOCHS + (epoch)) * WINDOWS + (window))
#define NONE 255
#define WHOLE 254

/* The collectives. STEP_OPEN is resume_together(). STEP_MEET, STEP_LINK, STEP_SAMPLE and STEP_COLUMNS come before the first round and
 * change nothing in it. STEP_GATHER, STEP_DELIVER and
 * STEP_END have no collective. */
mtype = { STEP_AGREE, STEP_OFFER, STEP_GRANT, STEP_COPY, STEP_MOVE, STEP_ARRIVE };
mtype = { RUNNING, DONE, FAILED, DIED, LIMIT };     /* how a rank ends */

/* The data, the same in all runs: sets of elements are masks. */
byte count[RANKS];
int large, keys;

/* A rank has begun so many collectives; what it contributes to agree: */
byte begun[RANKS];
mtype kind[RANKS];
typedef Said { byte epoch; byte window; byte elements; bool has_ended; bool has_failed; bool is_not_ready };
Said said[2 * RANKS];
#define SAID(rank) said[((begun[me] % 2) * RANKS) + (rank)]
/* and to the others, which stays as it is until all have read it: */
int drawn[RANKS];           /* elements of all ranks that go to this rank */
int granted[RANKS];         /* elements of all ranks that may come to this rank now */
bool is_whole[RANKS];       /* those are all */
int sent[RANKS];            /* the send buffer, and the own elements */
bool is_left[RANKS];        /* another round must follow */
int arrived[RANKS];         /* copied into this rank's slot by its neighbours */
bool is_placed[RANKS];      /* this rank has said where, and waits */

/* The filler of each rank: the window that is exchanged, without what has been sent, and the one that is gathered. */
byte epoch[RANKS], number[RANKS], round[RANKS];
int mine[RANKS], gathered[RANKS];
int kept[RANKS];            /* of a window in parts, in this rank's slot */
#ifdef MUTATION_A_WINDOW_HAS_NO_PARTS
#define HAS_PARTS false
#else
#define HAS_PARTS !HASH
#endif
byte element[RANKS];
bool is_closed[RANKS], has_ended[RANKS], has_failed[RANKS], has_rounds[RANKS];
byte released_blocks[RANKS];
int copied[RANKS];          /* to private memory */
/* What it remembers of windows, for positions. */
byte begin[RANKS * EPOCHS * WINDOWS], received[RANKS * EPOCHS * WINDOWS], windows[RANKS * EPOCHS];

/* The second ring. */
typedef Slot { int elements; byte epoch; byte window; byte first_element; bool is_end };
Slot slot[RANKS * SLOTS];
byte published[RANKS], released[RANKS];
#define SLOT_OF(rank, number) slot[(rank) * SLOTS + (number) % SLOTS]

/* The program of each rank, where this run began, and what it has saved. `at`: where the window begins in the pair. */
typedef Position { byte epoch; byte window; byte elements; byte at; int got };
Position consumed[RANKS], resume[RANKS], saved[RANKS];
byte taken[RANKS];          /* elements of the epoch, in this run */
bool is_saved[RANKS];
byte step, step_epoch;

byte run_number, waits, failures, deaths, stalls;
bool is_crashed, is_refused, is_freed[RANKS], is_gone[RANKS], is_stalled[RANKS];
mtype outcome[RANKS];
byte cause[RANKS], ended_at[RANKS];

#if RANKS == 2
#define ALL(holds) (holds(0) && holds(1))
#define SOME(holds) (holds(0) || holds(1))
#else
#define ALL(holds) (holds(0) && holds(1) && holds(2))
#define SOME(holds) (holds(0) || holds(1) || holds(2))
#endif

#define MAY_SAVE (run_number + 1 < RUNS)

#define IS_GONE_BUT_ME(rank) ((rank) == me || is_gone[rank])
#define HAS_BUFFERS(rank) ((rank) == me || !is_freed[rank])
#define HAS_BEGUN(rank) (begun[rank] >= begun[me])
#define HAS_GONE_BEFORE(rank) (is_gone[rank] && begun[rank] < begun[me])
#define IS_STALLED(rank) is_stalled[rank]

#include "exchange_window.pml"
#include "exchange_rank.pml"
#include "exchange_program.pml"
#include "exchange_end.pml"

inline choose_up_to(value, most) {
    value = 0;
    do
    :: value < most -> value++
    :: break
    od
}

#ifdef UNEQUAL
inline choose_data() { count[0] = 2; count[2] = 2; large = 1 }
#else
inline choose_data() {
    i = 0;
    do
#if HASH == 1
    :: i < RANKS -> count[i] = MOST; i++
#else
    :: i < RANKS -> choose_up_to(count[i], MOST); i++
#endif
    :: else -> break
    od;
    choose_up_to(i, BITS);
    large = (i < BITS && WINDOW > 1 -> 1 << i : 0);
    i = 0;
#if HASH == 1
    do
    :: i < BITS -> keys = keys | (1 << i); i++
    :: i < BITS -> i++
    :: i == BITS -> break
    od;
    i = 0
#endif
}
#endif

/* Nothing is left of a run that crashed. */
inline begin_run() {
    d_step {
        i = 0;
        do
        :: i < RANKS * EPOCHS * WINDOWS -> begin[i] = 0; received[i] = 0; i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < RANKS * SLOTS ->
            slot[i].elements = 0; slot[i].epoch = 0; slot[i].window = 0; slot[i].first_element = 0; slot[i].is_end = false; i++
        :: else -> break
        od;
        i = 0;
        do
        :: me < RANKS ->
            begun[me] = 0; kind[me] = 0; drawn[me] = 0; granted[me] = 0; is_whole[me] = false; sent[me] = 0; is_left[me] = false;
            arrived[me] = 0; is_placed[me] = false; round[me] = 0; kept[me] = 0; mine[me] = 0; gathered[me] = 0;
            is_closed[me] = false; has_ended[me] = false; has_rounds[me] = false; copied[me] = 0; published[me] = 0; released[me] = 0;
            taken[me] = 0; is_saved[me] = false; is_gone[me] = false; ended_at[me] = 0; outcome[me] = RUNNING; cause[me] = NONE;
            open_pair();
            me++
        :: else -> break
        od;
        me = 0;
        resume_together();
        i = 0;
        is_crashed = false
    }
}

init {
    byte i, me;
    int m;
    atomic { choose_data() };
    do
    :: run_number < RUNS ->
        atomic {
            begin_run();
#ifdef NEVER_REFUSED
            assert(!is_refused);
#endif
            if
            :: is_refused -> break
            :: else
            fi;
#if STEPS
            if
            :: MAY_SAVE -> choose_up_to(step, RANKS * MOST); choose_up_to(step_epoch, EPOCHS - 1)
            :: else
            fi;
#endif
            i = 0;
            do
            :: i < RANKS -> run Rank(i); run Program(i); i++
            :: else -> break
            od;
            i = 0
        };
        atomic {
            _nr_pr == 1;
            if
            :: is_crashed -> run_number++
            :: else -> check_end(); break
            fi
        }
    :: else -> break
    od
}

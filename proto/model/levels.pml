/*
 * Two levels of an exchange, checked by spin: a model of its own. Ranks of several nodes take part in operations in any order of their
 * steps, as in mpi-client/exchange/levels.c and step_round.c: rails bring numbers and messages into boards, where all ranks of a node
 * read what is theirs. exchange.pml has what the numbers are for, and what ranks of one node copy.
 */
#ifndef NODES
#define NODES 2
#endif
#ifndef PEERS
#define PEERS 2             /* ranks of each node */
#endif
#ifndef FAULTS
#define FAULTS 0            /* times that a rank fails or dies */
#endif
#ifndef FIND
#define FIND 0              /* a mistake, or a good end for which an assertion fails */
#endif

mtype = { AGREE, OFFER, GRANT, MOVE };
mtype = { RUNNING, DONE, FAILED, DIED };
mtype = { NUMBERS_HAVE_ONE_AREA, A_RANK_DOES_NOT_WAIT_FOR_POSTED, THE_BOARD_IS_NOT_ASKED, A_BOARD_GETS_NO_MORE_MEMORY, ROUNDS };

#define IS(mistake) (FIND == mistake)
#define WHEN(condition, action) if :: condition -> action :: else fi
#define NONE 255
#define RANKS (NODES * PEERS)
#define PAIRS (RANKS * RANKS)
#define PAIR(from, to) ((from) * RANKS + (to))
#define ON_RAIL(distance) ((me + (distance) * PEERS) % RANKS)
#define ON_NODE(distance) (me / PEERS * PEERS + (me + (distance)) % PEERS)

/* What ranks send: the numbers of their last two operations, and elements. */
byte begun[RANKS], said[2 * PAIRS], left[PAIRS], offered[PAIRS], sent[PAIRS], got[PAIRS], capacity;
mtype kind[RANKS];
#define SAID(from, to) said[begun[me] % 2 * PAIRS + PAIR(from, to)]

/* Boards: two areas for numbers, one for messages, with the operation that has brought them. What a rank has for another one is in the
 * board of the rank of its rail on that one's node. */
typedef Entry { byte by; byte value; byte first };
Entry entry[3 * PAIRS];
byte posted[RANKS];
#define ENTRY(from, to) entry[(kind[me] == MOVE -> 2 : (IS(NUMBERS_HAVE_ONE_AREA) -> 0 : begun[me] % 2)) * PAIRS + PAIR(from, to)]
#define HAS_POSTED(rank) (posted[rank] >= begun[me] || IS(A_RANK_DOES_NOT_WAIT_FOR_POSTED))

byte faults, cause[RANKS], ended_at[RANKS];
bool has_failed[RANKS], is_gone[RANKS], has_lost;
mtype outcome[RANKS];
hidden byte i, k, before, taken;        /* in one step */

inline leave(how) { outcome[me] = how; ended_at[me] = begun[me]; is_gone[me] = true; goto over }

inline wait_for(rank, has_done) {
    if
    :: has_done
    :: !(has_done) && is_gone[rank] -> leave(DIED)
    fi
}

/* A rank takes all that it is offered, or less: of each rank in proportion to what it has. One element for each rank of the node cannot
 * be less: the board gets more memory for them. */
#define HAS_SPACE (brought <= capacity || (brought <= PEERS && !IS(A_BOARD_GETS_NO_MORE_MEMORY)))
#define TAKES_ALL (arrives <= capacity && (HAS_SPACE || IS(THE_BOARD_IS_NOT_ASKED)))
inline say_grants() {
    k = 0; before = 0;
    for (i : 0 .. RANKS - 1) { k = k + left[PAIR(i, me)] }
    taken = (k + 2 * parts - 1) / (2 * parts);
    for (i : 0 .. RANKS - 1) {
        SAID(me, i) = 2 * (k -> (before + left[PAIR(i, me)]) * taken / k - before * taken / k : 0) + !TAKES_ALL;
        before = before + left[PAIR(i, me)]
    }
    arrives = 0; brought = 0
}

/* In agree: whether this rank has elements, and whether it has failed. */
inline begin(operation) {
    begun[me]++; kind[me] = operation; k = 0;
    for (i : 0 .. RANKS - 1) {
        assert(begun[i] != begun[me] || kind[i] == operation);
        k = k + left[PAIR(me, i)] - offered[PAIR(me, i)]
    }
    for (i : 0 .. RANKS - 1) { SAID(me, i) = (operation == AGREE -> (k > 0) + 2 * has_failed[me] : offered[PAIR(me, i)]) }
    WHEN(operation == GRANT, say_grants());
    is_true = false
}

/* What a rank of the rail has for all ranks of this node. */
inline bring(from) {
    for (i : me / PEERS * PEERS .. me / PEERS * PEERS + PEERS - 1) {
        ENTRY(from, i).by = begun[me]; ENTRY(from, i).value = SAID(from, i); ENTRY(from, i).first = sent[PAIR(from, i)];
        brought = brought + (kind[me] == OFFER || kind[me] == MOVE -> SAID(from, i) : 0)
    }
    assert(kind[me] != MOVE || HAS_SPACE)
}

/* What a board has for this rank. */
inline read(operation, board) {
    for (i : board % PEERS .. RANKS - 1) {
        k = (i % PEERS == board % PEERS -> ENTRY(i, me).value : 0);
        assert(i % PEERS != board % PEERS || ENTRY(i, me).by == begun[me]);
        is_true = is_true || (operation != OFFER && operation != MOVE && k % 2);
        failed = (operation == AGREE && k >= 2 && i < failed -> i : failed);
        arrives = arrives + (operation == OFFER -> k : 0);
        less[i] = (operation == GRANT && i % PEERS == board % PEERS -> k / 2 : less[i]);
        assert(operation != MOVE || k == 0 || ENTRY(i, me).first == got[PAIR(i, me)]);
        got[PAIR(i, me)] = got[PAIR(i, me)] + (operation == MOVE -> k : 0)
    }
    n++
}

/* Only this rank writes into its board. So its own entries may as well come at once, and be read as soon as all have posted. */
inline operate(operation) {
    atomic {
        if
        :: faults < FAULTS -> faults++; has_failed[me] = true
        :: faults < FAULTS -> faults++; has_lost = true; leave(DIED)
        :: true
        fi;
        d_step { begin(operation); bring(me); n = 1 }
    };
    atomic {
        do
        :: n < NODES -> wait_for(ON_RAIL(n), begun[ON_RAIL(n)] >= begun[me]); d_step { bring(ON_RAIL(n)); n++ }
        :: else -> n = 1; break
        od;
        posted[me] = begun[me];
        do
        :: n < PEERS -> wait_for(ON_NODE(n), HAS_POSTED(ON_NODE(n))); n++
        :: else -> n = 0; break
        od;
        d_step { read(operation, me) }
    };
    do
    :: n < PEERS -> d_step { read(operation, ON_NODE(n)) }
    :: else -> n = 0; break
    od
}

proctype Rank(byte me) {
    byte n, failed = NONE, parts, arrives, brought, less[RANKS];
    bool is_true;
    do
    ::  operate(AGREE);
        atomic {
            WHEN(failed != NONE, cause[me] = failed; leave(FAILED));
            d_step {
                for (i : PAIR(me, 0) .. PAIR(me, RANKS - 1)) { sent[i] = sent[i] + offered[i]; left[i] = left[i] - offered[i]; offered[i] = left[i] }
                parts = 1
            };
            WHEN(!is_true, leave(DONE))
        };
        do
        ::  operate(OFFER);
            operate(GRANT);
            WHEN(!is_true, break);
            d_step {
                for (i : 0 .. RANKS - 1) { offered[PAIR(me, i)] = less[i] }
                parts = 2 * parts; assert(parts <= 2 * RANKS && !IS(ROUNDS))
            }
        od;
        operate(MOVE)
    od;
over:
    skip
}

/* No elements; one for each rank of another node; two of each of these for rank 0, a hot key; two of rank 0 for each of these. */
#define ELEMENTS(from, to) (data < 2 || (data == 2 && to == 0) || (data == 3 && from == 0) -> (data + 1) / 2 : 0)

init {
    byte data, n;
    atomic {
        select (data : 0 .. 3);
        select (capacity : 1 .. 2);
        do
        :: n < PAIRS -> left[n] = (n / RANKS / PEERS == n % RANKS / PEERS -> 0 : ELEMENTS(n / RANKS, n % RANKS)); n++
        :: else -> n = 0; break
        od;
        do
        :: n < RANKS -> cause[n] = NONE; run Rank(n); n++
        :: else -> break
        od
    };
    _nr_pr == 1;
    d_step {
        for (i : 0 .. PAIRS - 1) { assert(outcome[0] != DONE || has_lost || (left[i] == 0 && got[i] == sent[i])) }
        for (i : 0 .. RANKS - 1) {
            assert(!IS(outcome[i]) && (outcome[i] == DONE || faults));
            assert(has_lost || (outcome[i] == outcome[0] && cause[i] == cause[0] && ended_at[i] == ended_at[0]))
        }
        n = 0
    }
}

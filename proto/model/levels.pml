/*
 * Two levels of an exchange, checked by spin: a model of its own. Ranks of several nodes take part in operations in any order of their
 * steps, as in mpi-client/exchange/levels.c and step_round.c: rails bring numbers and messages into boards, where all ranks of a node
 * read what is theirs. exchange.pml has what the numbers are for, and what ranks of one node copy.
 */
#define NODES 2
#define PEERS 2             /* ranks of each node */
#define RANKS (NODES * PEERS)
#include "exchange_common.pml"
mtype = { AGREE, OFFER, GRANT, MOVE };
mtype = { NUMBERS_HAVE_ONE_AREA, POSTED_IS_NOT_AWAITED, BOARD_IS_NOT_ASKED, BOARD_GETS_NO_MEMORY, ROUNDS };
#define PAIRS (RANKS * RANKS)
#define PAIR(from, to) ((from) * RANKS + (to))
#define ON_RAIL(distance) ((me + (distance) * PEERS) % RANKS)
#define ON_NODE(distance) (me / PEERS * PEERS + (me + (distance)) % PEERS)
/* What a rank has for another one: in this round, in later ones, and what that one has got; and the numbers of its last two operations. */
byte offered[PAIRS], left[PAIRS], got[PAIRS], said[2 * PAIRS];
#define SAID(from, to) said[begun[me] % 2 * PAIRS + PAIR(from, to)]
/* Boards, with two areas for numbers, and one for messages: an agreement lies between two of these. What a rank has for another one is
 * in the board of the rank of its rail on that one's node, with the operation that has brought it. */
typedef Entry { byte by; byte value };
Entry entry[3 * PAIRS];
byte posted[RANKS]; bool has_failed[RANKS];
#define ENTRY(from, to) entry[(kind[me] == MOVE -> 2 : (IS(NUMBERS_HAVE_ONE_AREA) -> 0 : begun[me] % 2)) * PAIRS + PAIR(from, to)]
inline wait_for(rank, has_done) { if :: has_done :: !(has_done) && is_gone[rank] -> leave(DIED) fi }
/* A board has memory for one element. It gets more for one for each rank of the node, because this cannot be less. */
#define HAS_SPACE (brought <= 1 || (brought <= PEERS && !IS(BOARD_GETS_NO_MEMORY)))
/* In agree a rank says whether it has elements, and has failed; in grant, that it cannot take what its rail would bring. */
inline say(operation) {
    k = 0;
    for (i : 0 .. RANKS - 1) {
        k = k || left[PAIR(me, i)];
        offered[PAIR(me, i)] = (operation == AGREE -> 0 : offered[PAIR(me, i)])
    }
    k = (operation == GRANT -> !HAS_SPACE && !IS(BOARD_IS_NOT_ASKED) : k + 2 * has_failed[me]);
    for (i : 0 .. RANKS - 1) { SAID(me, i) = (operation == OFFER || operation == MOVE -> offered[PAIR(me, i)] : k) }
    brought = 0; is_true = false
}
/* What a rank of the rail has for all ranks of this node. */
inline bring(operation, from) {
    for (i : me / PEERS * PEERS .. me / PEERS * PEERS + PEERS - 1) {
        ENTRY(from, i).by = begun[me]; ENTRY(from, i).value = SAID(from, i);
        brought = brought + SAID(from, i)
    }
    assert(operation != MOVE || HAS_SPACE)
}
/* What a board has for this rank. */
inline read(operation, board) {
    for (i : 0 .. RANKS - 1) {
        k = (i % PEERS == board % PEERS -> ENTRY(i, me).value : 0);
        assert(i % PEERS != board % PEERS || ENTRY(i, me).by == begun[me]);
        is_true = is_true || k % 2;
        failed = (operation == AGREE && k >= 2 && i < failed -> i : failed);
        got[PAIR(i, me)] = got[PAIR(i, me)] + (operation == MOVE -> k : 0)
    }
    d++
}
/* Only this rank writes into its board. So its own entries may as well come at once, and be read as soon as all have posted. */
inline operate(operation) {
    atomic {
        if
        :: faults < FAULTS -> faults++; has_failed[me] = true
        :: faults < FAULTS -> faults++; has_lost = true; leave(DIED)
        :: true
        fi;
        d_step { begin(operation); say(operation); bring(operation, me); d = 1 }
    };
    atomic {
        do
        :: d < NODES -> wait_for(ON_RAIL(d), begun[ON_RAIL(d)] >= begun[me]); d_step { bring(operation, ON_RAIL(d)); d++ }
        :: else -> posted[me] = begun[me]; d = 1; break
        od;
        do
        :: d < PEERS -> wait_for(ON_NODE(d), posted[ON_NODE(d)] >= begun[me] || IS(POSTED_IS_NOT_AWAITED)); d++
        :: else -> d = 0; break
        od;
        d_step { read(operation, me) }
    };
    do :: d < PEERS -> d_step { read(operation, ON_NODE(d)) } :: else -> d = 0; break od
}
/* A round moves one of so many parts of what is left. */
inline take_part() {
    for (n : PAIR(me, 0) .. PAIR(me, RANKS - 1)) {
        k = left[n] + offered[n]; offered[n] = (k + parts - 1) / parts; left[n] = k - offered[n]
    }
    parts = 2 * parts; assert(parts <= 16)
}
proctype Rank(byte me) {
    byte d, failed = NONE, parts, brought;
    bool is_true;
    do
    ::  operate(AGREE);
        atomic { WHEN(failed != NONE, cause[me] = failed; leave(FAILED)); WHEN(!is_true, leave(DONE)) };
        parts = 1;
        do
        ::  d_step { take_part() }; operate(OFFER); operate(GRANT); WHEN(!is_true, break); assert(!IS(ROUNDS))
        od;
        operate(MOVE)
    od;
over: skip
}
/* No elements; one for each rank of another node; three of each of these for rank 0, a hot key; two of rank 0 for each of these. */
#define ELEMENTS(from, to) (from / PEERS == to / PEERS -> 0 : \
    (data == 1) + 3 * (data == 2 && to == 0) + 2 * (data == 3 && from == 0))
init {
    byte data, a;
    atomic {
        select (data : 0 .. 3);
        do :: a < PAIRS -> left[a] = ELEMENTS((a / RANKS), (a % RANKS)); a++ :: else -> a = 0; break od;
        do :: a < RANKS -> cause[a] = NONE; run Rank(a); a++ :: else -> break od
    };
    _nr_pr == 1;
    d_step {
        for (i : 0 .. PAIRS - 1) { assert(has_lost || outcome[0] != DONE || got[i] == ELEMENTS((i / RANKS), (i % RANKS))) }
        check_together()
    }
}

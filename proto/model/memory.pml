/*
 * Memory order: each access that one side relies on, on a machine that takes the accesses of a thread in any order that acquire,
 * release, a fence or a lock allows (src/base/shared.h, supply.pair.MappedFile). Such a machine is weaker than aarch64: it keeps no
 * order that only an address or a branch depends on, because compilers need not keep these. Each case is a few accesses of two or three
 * threads, and an outcome that must not be. A branch is not in the program: outcomes are those in which it was taken.
 */

/* Mistakes: the access is relaxed. */
#ifdef MUTATION_STORE_IS_RELAXED
#define STORE_LAST STORE
#else
#define STORE_LAST (STORE | RELEASE)
#endif
#ifdef MUTATION_LOAD_IS_RELAXED
#define LOAD_FIRST LOAD
#else
#define LOAD_FIRST (LOAD | ACQUIRE)
#endif

/* Kinds of accesses. FENCE has no place. */
#define LOAD 1
#define STORE 2
#define ACQUIRE 4
#define RELEASE 8
#define FENCE 16
#define TAKE 32     /* a lock, when it is free: with LOAD, STORE and ACQUIRE */
#define LOCK (TAKE | LOAD | STORE | ACQUIRE)

/* Places. A mapped file begins with zeros. */
#define NONE 0
#define SLOT 1
#define PUBLISHED 2
#define RELEASED 3
#define PIPE 4
#define PIPE_LOCK 5
#define MESSAGE 6
#define PLACES 7

#define THREADS 3
#define ACCESSES 6

typedef thread {
    byte kind[ACCESSES];
    byte place[ACCESSES];
    byte number[ACCESSES];  /* what STORE stores; where LOAD puts what it has loaded */
    bool done[ACCESSES];
    byte count
};

thread threads[THREADS];
byte memory[PLACES];
byte loaded[THREADS];
byte ended;

#define KIND(i) threads[me].kind[i]
#define PLACE(i) threads[me].place[i]
#define IS(i, bits) ((KIND(i) & (bits)) == (bits))

/* Access `i` comes after access `before`, which is earlier in the program: one place, acquire before it, release after it, a fence. */
#define IN_ORDER(before, i) ((PLACE(before) == PLACE(i) && PLACE(i) != NONE) || IS(before, ACQUIRE) || IS(i, RELEASE) || \
    (IS(before, FENCE | RELEASE) && IS(i, STORE)) || (IS(i, FENCE | ACQUIRE) && IS(before, LOAD)))
#define FREE(before, i) (threads[me].done[before] || !IN_ORDER(before, i))
#define FREE_1(i) FREE(0, i)
#define FREE_2(i) (FREE_1(i) && FREE(1, i))
#define FREE_3(i) (FREE_2(i) && FREE(2, i))
#define FREE_4(i) (FREE_3(i) && FREE(3, i))
#define FREE_5(i) (FREE_4(i) && FREE(4, i))
#define NEXT(i) (i < threads[me].count && !threads[me].done[i] && (!IS(i, TAKE) || memory[PLACE(i)] == 0))

inline access(i) {
    if
    :: IS(i, TAKE) -> memory[PLACE(i)] = 1
    :: !IS(i, TAKE) && IS(i, LOAD) -> loaded[threads[me].number[i]] = memory[PLACE(i)]
    :: !IS(i, TAKE) && IS(i, STORE) -> memory[PLACE(i)] = threads[me].number[i]
    :: IS(i, FENCE)
    fi;
    threads[me].done[i] = true;
    left--
}

proctype Thread(byte me) {
    byte left = threads[me].count;
    do
    :: d_step { NEXT(0) -> access(0) }
    :: d_step { NEXT(1) && FREE_1(1) -> access(1) }
    :: d_step { NEXT(2) && FREE_2(2) -> access(2) }
    :: d_step { NEXT(3) && FREE_3(3) -> access(3) }
    :: d_step { NEXT(4) && FREE_4(4) -> access(4) }
    :: d_step { NEXT(5) && FREE_5(5) -> access(5) }
    :: left == 0 -> break
    od;
    ended++
}

inline does(who, what, where, with) {
    threads[who].kind[threads[who].count] = what;
    threads[who].place[threads[who].count] = where;
    threads[who].number[threads[who].count] = with;
    threads[who].count++
}

/* A system call on a pipe. The kernel changes what is in it under a lock, and nothing else of it is relied on. */
inline begins_call(who) {
#ifdef MUTATION_PIPE_HAS_NO_LOCK
    skip
#else
    does(who, LOCK, PIPE_LOCK, 0)
#endif
}
inline ends_call(who) {
#ifdef MUTATION_PIPE_HAS_NO_LOCK
    skip
#else
    does(who, STORE | RELEASE, PIPE_LOCK, 0)
#endif
}

#ifdef PUBLISH
/* P2, P3 and R3: who has seen `published` sees the block. So do the other fields that are stored last and read first: `version`,
 * `schema_columns`, `counts_known`, `foreign_count`. */
inline program() {
    does(0, STORE, SLOT, 1);
    does(0, STORE_LAST, PUBLISHED, 1);
    does(1, LOAD_FIRST, PUBLISHED, 0);
    does(1, LOAD, SLOT, 1)
}
#define BAD (loaded[0] == 1 && loaded[1] == 0)
#endif

#ifdef NOTIFY
/* P4, D4 and R1: what was stored before a record was written is seen after it was read: the text of a failure. */
inline program() {
    does(0, STORE, SLOT, 1);
    begins_call(0);
    does(0, STORE, PIPE, 1);
    ends_call(0);
    begins_call(1);
    does(1, LOAD, PIPE, 0);
    ends_call(1);
    does(1, LOAD, SLOT, 1)
}
#define BAD (loaded[0] == 1 && loaded[1] == 0)
#endif

#ifdef REUSE
/* C1 and P2: the rank, which may still read a block when it releases it, reads nothing of the next one in this slot. */
inline program() {
    does(0, LOAD, SLOT, 0);
    does(0, STORE_LAST, RELEASED, 1);
    does(1, LOAD_FIRST, RELEASED, 1);
    does(1, STORE, SLOT, 1)
}
#define BAD (loaded[1] == 1 && loaded[0] == 1)
#endif

#ifdef CREDIT
/* R3: `published` is read first, then `released`, which another thread of the rank stores. So no block is beyond the credit. */
inline program() {
    does(0, STORE | RELEASE, RELEASED, 1);
    does(1, LOAD | ACQUIRE, RELEASED, 0);
    does(1, STORE | RELEASE, PUBLISHED, 1);
    does(2, LOAD_FIRST, PUBLISHED, 1);
    does(2, LOAD, RELEASED, 2)
}
#define BAD (loaded[0] == 1 && loaded[1] == 1 && loaded[2] == 0)
#endif

#ifdef WAKE
/* C1, C2 and P1: the rank writes no wake-up into a full pipe. The task, which empties it, then sees what is released. */
inline program() {
    memory[PIPE] = 1;
    does(0, STORE | RELEASE, RELEASED, 1);
    begins_call(0);
    does(0, LOAD, PIPE, 0);
    does(0, STORE, PIPE, 1);
    ends_call(0);
#ifdef MUTATION_HEADER_IS_READ_BEFORE_THE_PIPE
    does(1, LOAD | ACQUIRE, RELEASED, 2);
#endif
    begins_call(1);
    does(1, LOAD, PIPE, 1);
    does(1, STORE, PIPE, 0);
    ends_call(1);
#ifndef MUTATION_HEADER_IS_READ_BEFORE_THE_PIPE
    does(1, LOAD | ACQUIRE, RELEASED, 2)
#endif
}
/* Nothing is in the pipe, so the task sleeps. */
#define BAD (loaded[0] == 1 && loaded[1] == 1 && loaded[2] == 0 && memory[PIPE] == 0)
#endif

/* A word of a shared ring, stored with release and loaded with acquire: here a fence beside it. */
#ifdef MUTATION_NO_FENCE
#define fence(who, kind) skip
#else
#define fence(who, kind) does(who, FENCE | kind, NONE, 0)
#endif

#ifdef ARRIVE
/* *arrive* of an exchange: what a neighbour has copied into a slot is seen after its word. So is what is in a board after `posted`. */
inline program() {
    does(0, STORE, SLOT, 1);
    fence(0, RELEASE);
    does(0, STORE, MESSAGE, 1);
    does(1, LOAD, MESSAGE, 0);
    fence(1, ACQUIRE);
    does(1, LOAD, SLOT, 1)
}
#define BAD (loaded[0] == 1 && loaded[1] == 0)
#endif

#ifdef OFFER_SLOT
/* *copy* of an exchange: a rank names a slot whose block was released, and reads nothing that neighbours copy there. So it reads nothing
 * of operation n + 2 in a board: it stores `posted` of n + 1 when it has read n. */
inline program() {
    does(0, LOAD, SLOT, 0);
    fence(0, RELEASE);
    does(0, STORE, MESSAGE, 1);
    does(1, LOAD, MESSAGE, 1);
    fence(1, ACQUIRE);
    does(1, STORE, SLOT, 1)
}
#define BAD (loaded[1] == 1 && loaded[0] == 1)
#endif

#ifdef WITNESS_BOTH_MISS
/* Two sides that each store and then read what the other stores: release and acquire do not help. No step of the protocol is so. */
inline program() {
    does(0, STORE | RELEASE, RELEASED, 1);
    does(0, LOAD | ACQUIRE, PUBLISHED, 0);
    does(1, STORE | RELEASE, PUBLISHED, 1);
    does(1, LOAD | ACQUIRE, RELEASED, 1)
}
#define BAD (loaded[0] == 0 && loaded[1] == 0)
#endif

init {
    byte who;
    d_step { program() }
    atomic {
        for (who : 0 .. THREADS - 1) { run Thread(who) }
    }
    ended == THREADS;
    assert(!(BAD))
}

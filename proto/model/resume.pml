/*
 * Resuming with another number of ranks (PROTOCOL.md, *Positions*): runs stop anywhere, and the plan of the rest gives every element to
 * exactly one rank. As in the Scala package supply.plan (Resume, Rest) and supply.task.PairSupply. Ranks of a run share nothing, so
 * they take their steps one after the other here.
 */

/* Settings, each -DNAME=NUMBER. */
#ifndef PARTITIONS
#define PARTITIONS 3
#endif
#ifndef ELEMENTS
#define ELEMENTS 2          /* the most of a partition; smaller numbers are tried, too */
#endif
#ifndef FIRST_RANKS
#define FIRST_RANKS 2       /* ranks of the first run, which stops, */
#endif
#ifndef SECOND_RANKS
#define SECOND_RANKS 3      /* of the second one, which continues and stops, */
#endif
#ifndef THIRD_RANKS
#define THIRD_RANKS 2       /* and of the third one, which continues to the end */
#endif

#define EPOCHS 2
#define RANKS 3             /* at most, in any run */
#define NONE 100
#define ALL 101

/* The plan of this run in this epoch. A rank gets its partitions in the order of `sequence`, each without its first `done` elements. */
byte ranks, first_epoch, epoch;
bool is_rest;
byte owner[PARTITIONS];
byte done[PARTITIONS];
byte sequence[PARTITIONS];

byte size[PARTITIONS];
bool are_sizes_known;
bool is_taken[EPOCHS * PARTITIONS * ELEMENTS];

/* What the ranks have saved: `elements` of `partition`, or the beginning of the epoch. */
byte saved_epoch[RANKS];
bool is_inside[RANKS];
byte partition[RANKS];
byte elements[RANKS];

byte i, n, p, rank, resumed;
bool is_begun, is_after;

inline choose_up_to(value, most) {
    value = 0;
    do
    :: value < most -> value++
    :: break
    od
}

/* Any order: the shuffle is some pure function of seed, epoch and rank. */
inline shuffle() {
    d_step {
        i = 0;
        do
        :: i < PARTITIONS -> sequence[i] = i; i++
        :: else -> break
        od;
        n = 0
    };
    do
    :: i > 1 ->
        i--;
        choose_up_to(n, i);
        p = sequence[i];
        sequence[i] = sequence[n];
        sequence[n] = p
    :: else -> break
    od;
    i = 0;
    n = 0;
    p = 0
}

inline plan_whole_epoch() {
    d_step {
        p = 0;
        do
        :: p < PARTITIONS -> owner[p] = p % ranks; done[p] = 0; p++
        :: else -> break
        od;
        is_rest = false
    };
    shuffle()
}

inline take() {
    assert(!is_taken[(epoch * PARTITIONS + p) * ELEMENTS + n]);
    is_taken[(epoch * PARTITIONS + p) * ELEMENTS + n] = true;
    n++
}

/* The rank's next partition in `sequence`, from i on; i = PARTITIONS: it has none. */
inline find_next() {
    do
    :: i < PARTITIONS && owner[sequence[i]] != rank -> i++
    :: else -> break
    od
}

/* A rank gets its part of the epoch; if the run may stop, it stops anywhere. */
inline supply(may_stop) {
    i = 0;
    is_inside[rank] = false;
    /* A rank that has received nothing has saved nothing. */
    saved_epoch[rank] = (epoch == first_epoch -> 0 : epoch);
    do
    :: find_next();
        if
        :: i == PARTITIONS && may_stop -> break
        :: i == PARTITIONS -> saved_epoch[rank] = epoch + 1; is_inside[rank] = false; break
        :: i < PARTITIONS && may_stop -> break
        :: i < PARTITIONS ->
            p = sequence[i];
            n = done[p];
            do
            :: n < size[p] ->
                take();
                saved_epoch[rank] = epoch;
                is_inside[rank] = true;
                partition[rank] = p;
#ifdef MUTATION_ELEMENTS_COUNT_FROM_THE_PART
                elements[rank] = n - done[p]
#else
                elements[rank] = n
#endif
            :: n == size[p] || may_stop -> break
            od;
            if
            :: n < size[p] -> break
            :: else -> i++
            fi
        fi
    od
}

inline supply_all(may_stop) {
    rank = 0;
    do
    :: rank < ranks -> supply(may_stop); rank++
    :: else -> break
    od
}

/* What a rank has consumed of its partitions. */
inline subtract() {
    is_after = false;
    i = 0;
    do
    :: i < PARTITIONS ->
#ifdef MUTATION_ANOTHER_ORDER
        p = i;
#else
        p = sequence[i];
#endif
        if
        :: owner[p] != rank
        :: owner[p] == rank && saved_epoch[rank] > resumed ->
#ifndef MUTATION_A_RANK_AT_THE_END_OF_THE_EPOCH_IS_FORGOTTEN
            done[p] = ALL
#else
            skip
#endif
        :: owner[p] == rank && saved_epoch[rank] == resumed && is_inside[rank] && p == partition[rank] ->
#ifndef MUTATION_PARTS_BEGIN_AT_THEIR_FIRST_ELEMENT
            done[p] = elements[rank];
#endif
            is_after = true
        :: owner[p] == rank && saved_epoch[rank] == resumed && is_inside[rank] && p != partition[rank] ->
            done[p] = (is_after -> done[p] : ALL)
        :: owner[p] == rank && saved_epoch[rank] == resumed && !is_inside[rank]
        fi;
        i++
    :: else -> break
    od
}

/* Any spread over the ranks: the one that is used is the most even one. */
inline spread() {
    p = 0;
    do
    :: p < PARTITIONS ->
        if
        :: owner[p] == NONE || done[p] == ALL || (are_sizes_known && done[p] >= size[p]) -> owner[p] = NONE; done[p] = 0
        :: else -> choose_up_to(n, ranks - 1); owner[p] = n
        fi;
        p++
    :: else -> break
    od;
    is_rest = true;
    shuffle()
}

/* The plan of what is left, for `next` ranks. */
inline resume(next) {
    d_step {
        resumed = NONE;
        rank = 0;
        do
        :: rank < ranks ->
            if
            :: saved_epoch[rank] < first_epoch -> saved_epoch[rank] = first_epoch
            :: else
            fi;
            resumed = (saved_epoch[rank] < resumed -> saved_epoch[rank] : resumed);
            rank++
        :: else -> break
        od;
#ifdef MUTATION_AN_UNTOUCHED_REST_BECOMES_A_WHOLE_EPOCH
        is_begun = false;
#else
        is_begun = (is_rest && epoch == resumed);
#endif
        rank = 0;
        do
        :: rank < ranks ->
            is_begun = is_begun || is_inside[rank] || saved_epoch[rank] > resumed;
            assert(saved_epoch[rank] == resumed || (saved_epoch[rank] == resumed + 1 && !is_inside[rank]));
            subtract();
            rank++
        :: else -> break
        od;
        ranks = next;
        epoch = resumed;
        first_epoch = resumed
    };
    if
    :: is_begun -> spread()
    :: else -> plan_whole_epoch()
    fi;
    forget()
}

/* These say nothing any more. */
inline forget() {
    rank = 0;
    d_step {
        do
        :: rank < RANKS -> saved_epoch[rank] = 0; is_inside[rank] = false; partition[rank] = 0; elements[rank] = 0; rank++
        :: else -> break
        od;
        rank = 0;
        resumed = 0;
        is_begun = false;
        is_after = false
    }
}

inline next_epoch() {
    supply_all(false);
    epoch++;
    plan_whole_epoch()
}

/* A run supplies whole epochs, or none, and then stops. */
inline run_and_stop() {
    do
    :: epoch + 1 < EPOCHS -> next_epoch()
    :: epoch < EPOCHS -> supply_all(true); break
    :: epoch == EPOCHS -> break         /* Nothing is left. */
    od
}

init {
    atomic {
        choose_up_to(size[0], ELEMENTS);
        p = 1;
        do
        :: p < PARTITIONS -> size[p] = ELEMENTS - p % 2; p++
        :: else -> break
        od;
        if
        :: are_sizes_known = true
        :: are_sizes_known = false
        fi;
        ranks = FIRST_RANKS;
        plan_whole_epoch()
    };
    atomic { run_and_stop() };
    atomic { resume(SECOND_RANKS) };
    atomic { run_and_stop() };
#ifdef WITNESS_STOPPED_IN_A_REST
    assert(!is_rest || !is_inside[0] || !is_inside[1]);
#endif
    atomic { resume(THIRD_RANKS) };
    atomic {
        do
        :: epoch + 1 < EPOCHS -> next_epoch()
        :: else -> break
        od;
        if
        :: epoch < EPOCHS -> supply_all(false)
        :: else
        fi;
        i = 0;
        d_step {
            do
            :: i < EPOCHS * PARTITIONS * ELEMENTS ->
                assert(is_taken[i] == (i % ELEMENTS < size[(i / ELEMENTS) % PARTITIONS]));
                i++
            :: else -> break
            od;
            i = 0
        }
    }
}

/* The filler of a rank: the steps that it takes with the others, and how it fails. `finish` is part of move here. In *copy* and *arrive*
 * it waits for words of its neighbours, not for a collective. */

inline leave(how) { outcome[me] = how; is_gone[me] = true; goto over }

/* A stalled rank continues when the others have left. */
inline may_stop() {
    if
    :: deaths < DEATHS -> deaths++; leave(DIED)
    :: stalls < STALLS -> stalls++; is_stalled[me] = true
    :: true
    fi
}

inline may_fail() {
    if
#ifdef MUTATION_A_FAILING_RANK_LEAVES
    :: failures < FAILURES -> failures++; cause[me] = me; leave(FAILED)
#endif
    :: failures < FAILURES -> failures++; has_failed[me] = true
    :: true
    fi
}

inline collective(operation) {
    atomic { may_stop() };
    atomic {
        !is_stalled[me] || ALL(IS_GONE_BUT_ME);
        is_stalled[me] = false;
        begun[me]++;
        kind[me] = operation;
        i = 0;
        do
        :: i < RANKS -> assert(begun[i] != begun[me] || kind[i] == operation); i++
        :: else -> break
        od;
        i = 0
    }
}

inline wait_for(others) {
    if
    :: atomic { (others) -> assert(ALL(HAS_BUFFERS)) }
    :: atomic { !(others) && SOME(HAS_GONE_BEFORE) -> leave(DIED) }
    :: atomic { timeout ->
        assert(SOME(IS_STALLED));
#ifdef MUTATION_BUFFERS_ARE_FREED_AFTER_A_TIMEOUT
        is_freed[me] = true;
#endif
        leave(LIMIT)
    }
    fi
}

inline wait_for_all() { wait_for(ALL(HAS_BEGUN)) }

#ifdef MUTATION_A_RANK_ENDS_ALONE
#define IS_OVER (has_ended[me] && gathered[me] == 0)
#else
#define IS_OVER (total == 0 && dealt == 0)
#endif
inline say() {
    d_step {
        i = ((begun[me] + 1) % 2) * RANKS + me;
        said[i].epoch = epoch[me];
        said[i].window = number[me];
        said[i].elements = (has_rounds[me] -> 0 : COUNT(gathered[me]));
        said[i].has_ended = has_ended[me];
        said[i].has_failed = has_failed[me];
        said[i].is_not_ready = is_not_ready;
        is_not_ready = false;
        i = 0
    }
}

/* What all have said: the lowest rank that failed, their elements, how many have ended, or whether agree is repeated. */
inline hear() {
    failed = NONE;
    i = 0;
    do
    :: i < RANKS ->
        failed = (SAID(i).has_failed && failed == NONE -> i : failed);
        total = total + SAID(i).elements;
        ended = ended + SAID(i).has_ended;
#ifdef MUTATION_ONLY_THE_RANK_THAT_WAITS_REPEATS_AGREE
        is_repeated = is_repeated || (i == me && SAID(i).is_not_ready);
#else
        is_repeated = is_repeated || SAID(i).is_not_ready;
#endif
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < RANKS ->
        assert(failed != NONE || SAID(i).epoch == epoch[me]);
        assert(failed != NONE || SAID(i).window == number[me]);
        i++
    :: else -> break
    od;
    i = 0
}

/* A run that resumes takes larger steps: other lines try them one by one. */
#if RUNS > 1
#define IN_ONE_STEP atomic
#else
#define IN_ONE_STEP
#endif

inline gather() {
#ifndef MUTATION_A_SLOT_IS_REUSED_BEFORE_ITS_RELEASE
    published[me] - released[me] < SLOTS;
#endif
    do
    :: atomic { !has_rounds[me] && !has_failed[me] && CAN_GATHER -> d_step { gather_element() } }
    :: atomic { !has_rounds[me] && !has_failed[me] && !is_closed[me] && waits < WAITS -> waits++; is_not_ready = true; break }
    :: atomic { has_rounds[me] || has_failed[me] || is_closed[me] -> break }
    od
}

/* While the data moves. */
inline gather_next() {
    do
    :: atomic { !is_left[me] && !has_failed[me] && CAN_GATHER -> d_step { gather_element() } }
    :: break
    od
}

inline agree() {
    atomic { may_fail(); say() };
    collective(STEP_AGREE);
    wait_for_all();
    atomic {
        d_step { hear() };
        if
        :: failed != NONE -> cause[me] = failed; leave(FAILED)
        :: failed == NONE && (has_rounds[me] || is_repeated)
        :: failed == NONE && !has_rounds[me] && !is_repeated && IS_OVER -> end_epoch(); is_repeated = true
        :: failed == NONE && !has_rounds[me] && !is_repeated && !IS_OVER -> may_fail(); d_step { adopt_and_draw() }
        fi;
        failed = 0; total = 0; ended = 0
    }
}

/* If a rank cannot take its part, all take half of theirs: with `all` no rank receives more in a round than the others. */
#define IS_WHOLE(rank) is_whole[rank]
#ifdef MUTATION_EACH_RANK_TAKES_WHAT_FITS
#define FITS is_whole[me]
#else
#define FITS ALL(IS_WHOLE)
#endif

inline exchange() {
    if
    :: is_repeated
    :: !is_repeated ->
        collective(STEP_OFFER);
        wait_for_all();
        grant();
        collective(STEP_GRANT);
        wait_for_all();
        do
        :: FITS -> break
        :: else ->
            parts = 2 * parts;
#ifdef MUTATION_EACH_RANK_TAKES_WHAT_FITS
            grant()
#else
            collective(STEP_OFFER);
            wait_for_all();
            grant();
            collective(STEP_GRANT);
            wait_for_all()
#endif
        od;
#if NEIGHBOURS
        is_placed[me] = true;
        collective(STEP_COPY);
        copy_to_neighbours();
        collective(STEP_ARRIVE);
        gather_next();
#ifndef MUTATION_A_RANK_DOES_NOT_WAIT_FOR_ITS_NEIGHBOURS
        wait_for_all();
#endif
#else
        pack();
        collective(STEP_MOVE);
        gather_next();
        wait_for_all();
#endif
        finish();
        /* All have agreed with this window that the epoch ends. */
        if
        :: atomic { is_last && !has_rounds[me] -> published[me] - released[me] < SLOTS; end_epoch() }
        :: else
        fi
    fi;
    is_repeated = false
}

proctype Rank(byte me) {
    byte i, from, to, room, failed, total, ended, parts, dealt, counts[RANKS];
    bool is_repeated, is_not_ready, is_last, is_part, has_parts;
    int m;
    {
        atomic {
            if
            :: epoch[me] == EPOCHS -> leave(DONE)
            :: else
            fi
        };
        do
        ::
            IN_ONE_STEP { gather(); agree(); exchange() }
        od
    } unless { is_crashed };
over:
    skip
}

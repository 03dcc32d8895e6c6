/* The filler of a rank: the steps that it takes with the others, and how it fails. `count` and `finish` are part of move here. */

#define SAID(rank) said[((begun[me] % 2) * RANKS) + (rank)]

#if RANKS == 2
#define OTHERS_ARE_GONE (is_gone[1 - me])
#define OTHERS_HAVE_BUFFERS (!is_freed[1 - me])
#define ALL_HAVE_BEGUN (begun[0] >= begun[me] && begun[1] >= begun[me])
#define SOME_ARE_GONE ((is_gone[0] && begun[0] < begun[me]) || (is_gone[1] && begun[1] < begun[me]))
#define IS_STALLED (is_stalled[0] || is_stalled[1])
#else
#define OTHERS_ARE_GONE (is_gone[(me + 1) % 3] && is_gone[(me + 2) % 3])
#define OTHERS_HAVE_BUFFERS (!is_freed[(me + 1) % 3] && !is_freed[(me + 2) % 3])
#define ALL_HAVE_BEGUN (begun[0] >= begun[me] && begun[1] >= begun[me] && begun[2] >= begun[me])
#define SOME_ARE_GONE ((is_gone[0] && begun[0] < begun[me]) || (is_gone[1] && begun[1] < begun[me]) || \
    (is_gone[2] && begun[2] < begun[me]))
#define IS_STALLED (is_stalled[0] || is_stalled[1] || is_stalled[2])
#endif

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
        !is_stalled[me] || OTHERS_ARE_GONE;
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

inline wait_for_all() {
    if
    :: atomic { ALL_HAVE_BEGUN -> assert(OTHERS_HAVE_BUFFERS) }
    :: atomic { !ALL_HAVE_BEGUN && SOME_ARE_GONE -> leave(DIED) }
    :: atomic { timeout ->
        assert(IS_STALLED);
#ifdef MUTATION_BUFFERS_ARE_FREED_AFTER_A_TIMEOUT
        is_freed[me] = true;
#endif
        leave(LIMIT)
    }
    fi
}

#ifdef MUTATION_A_RANK_ENDS_ALONE
#define IS_OVER (has_ended[me] && mine[me] == 0 && gathered[me] == 0)
#else
#define IS_OVER is_over
#endif
#ifdef MUTATION_WINDOWS_ARE_NOT_COMPARED
#define IS_FOR_THE_NEXT_WINDOW (mine[me] == 0)
#else
#define IS_FOR_THE_NEXT_WINDOW (lowest == upcoming[me])
#endif

inline say() {
    d_step {
        i = ((begun[me] + 1) % 2) * RANKS + me;
        said[i].epoch = epoch[me];
        said[i].window = (mine[me] -> upcoming[me] - 1 : upcoming[me]);
        said[i].has_elements = (mine[me] || gathered[me]);
        said[i].has_ended = has_ended[me];
        said[i].has_failed = has_failed[me];
        said[i].is_not_ready = is_not_ready;
        is_not_ready = false;
        i = 0
    }
}

/* What all have said: the lowest rank that failed, the lowest window, whether the epoch is over, or agree is repeated. */
inline hear() {
    failed = NONE;
    lowest = NONE;
    is_over = true;
    i = 0;
    do
    :: i < RANKS ->
        failed = (SAID(i).has_failed && failed == NONE -> i : failed);
        lowest = (SAID(i).window < lowest -> SAID(i).window : lowest);
#ifdef MUTATION_ONLY_THE_RANK_THAT_WAITS_REPEATS_AGREE
        is_repeated = is_repeated || (i == me && SAID(i).is_not_ready);
#else
        is_repeated = is_repeated || SAID(i).is_not_ready;
#endif
        is_over = is_over && SAID(i).has_ended && !SAID(i).has_elements;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < RANKS ->
        assert(failed != NONE || SAID(i).epoch == epoch[me]);
        assert(failed != NONE || SAID(i).window == lowest || SAID(i).window == lowest + 1);
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
    :: atomic { mine[me] == 0 && !has_failed[me] && CAN_GATHER -> d_step { gather_element() } }
    :: atomic { mine[me] == 0 && !has_failed[me] && !is_closed[me] && waits < WAITS -> waits++; is_not_ready = true; break }
    :: atomic { mine[me] || has_failed[me] || is_closed[me] -> break }
    od
}

/* While the data moves. */
inline gather_next() {
    do
    :: atomic { !has_failed[me] && CAN_GATHER -> d_step { gather_element() } }
    :: break
    od
}

inline agree() {
    atomic { may_fail(); say() };
    collective(AGREE);
    wait_for_all();
    atomic {
        d_step { hear() };
        if
        :: failed != NONE -> cause[me] = failed; leave(FAILED)
        :: failed == NONE && is_repeated
        :: failed == NONE && !is_repeated && IS_OVER -> end_epoch(); is_repeated = true
        :: failed == NONE && !is_repeated && !IS_OVER && IS_FOR_THE_NEXT_WINDOW -> may_fail(); d_step { adopt_and_draw() }
        :: failed == NONE && !is_repeated && !IS_OVER && !IS_FOR_THE_NEXT_WINDOW
        fi;
        failed = 0; lowest = 0; is_over = false;
        if
        :: epoch[me] == EPOCHS -> leave(DONE)
        :: else
        fi
    }
}

inline exchange() {
    if
    :: is_repeated
    :: !is_repeated ->
        collective(OFFER);
        wait_for_all();
        grant();
        collective(GRANT);
        wait_for_all();
#if NEIGHBOURS
        is_placed[me] = true;
#ifndef MUTATION_A_RANK_COPIES_BEFORE_ALL_HAVE_PLACED
        collective(PLACE);
        wait_for_all();
#endif
        copy_to_neighbours();
#ifndef MUTATION_A_RANK_DOES_NOT_WAIT_FOR_ITS_NEIGHBOURS
        collective(ARRIVE);
        gather_next();
        wait_for_all();
#endif
#else
        pack();
        collective(MOVE);
        gather_next();
        wait_for_all();
#endif
        finish()
    fi;
    is_repeated = false
}

proctype Rank(byte me) {
    byte i, from, to, room, failed, lowest;
    bool is_over, is_repeated, is_not_ready, is_last;
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

/* The rank's side of a pair: mpi-client/src/{files/claimed_file,pair/pair,api/receive}.c. Its number is its generation. */

/* O1 for one of the pipes: a file at the path is a dead rank's, because the kernel gives its lock to no other rank. */
inline claim_pipe(path, open_end) {
    if
    :: path != NONE -> path = NONE
    :: path == NONE
    fi;
    d_step { path = me; open_end = true }
}

/* C1, C2: up to the first block that is still held. */
inline release(number) {
    d_step {
        held[SLOT(number)] = false;
        before = released;
        do
        :: released < expected && !held[SLOT(released)] -> released++
        :: else -> break
        od
    };
#ifdef MUTATION_RELEASE_NOT_CUMULATIVE
    if
    :: number >= before -> released = before; pair[me].released = number + 1; wake_task()
    :: else
    fi
#elif defined(MUTATION_C2_BEFORE_C1)
    if
    :: released != before -> wake_task(); pair[me].released = released
    :: else
    fi
#elif defined(MUTATION_NO_C1)
    if
    :: released != before -> wake_task()
    :: else
    fi
#else
    if
    :: released != before ->
        d_step { pair[me].released = released; assert(released <= pair[me].published) };    /* C1 */
        wake_task()                                                         /* C2 */
    :: else
    fi
#endif
}

/* A full pipe is not an error. */
inline wake_task() {
    if
    :: atomic { nfull(request_pipe[me]) -> request_pipe[me]!RELEASE, me }
#ifndef MUTATION_C2_BLOCKS
    :: full(request_pipe[me])
#endif
    fi
}

/* The program reads in place while it holds the block. */
inline read_in_place(number) {
    d_step {
#if RESIDENT_FILE
        if
        :: IS_IN_FILE(number) -> read_in_file(number)
        :: else
        fi;
#endif
        assert(pair[me].copy[SLOT(number)] == MARK(number));
        assert(IS_IN_FILE(number) || pair[me].values[SLOT(number)] == MARK(number) + START(me))
    }
}

/* Writes the reason, then STOP. Makes space for it by removing requests that the task has not read. */
inline stop(why) {
    pair[me].rank_failure = true;
    do
    :: atomic { nfull(request_pipe[me]) -> request_pipe[me]!STOP, me }; break
    :: full(request_pipe[me]) ->
        if
        :: atomic { nempty(request_pipe[me]) -> request_pipe[me]?unread, _ }
        :: empty(request_pipe[me])
        fi
    od;
    outcome = why
}

#if STREAM
#define IS_NEWEST(number) ((number) == newest)
#else
#define IS_NEWEST(number) false
#endif

proctype Rank(byte me) {
    byte expected, released, before, number, generation;
#if STREAM
    byte newest = NONE;         /* the last block that came: a loop holds it until the next one comes */
    bool is_after_end;         /* END_OF_EPOCH has come, and the program has not asked for more */
#endif
    bool held[SLOTS];
#ifdef MUTATION_REMOVER_LOOKS_LIKE_A_RANK
    byte stale = NONE;          /* the generation of the file that is being removed */
#endif
    mtype kind, unread;
    mtype outcome;
    {
        ONE_STEP {
        outcome = RUNNING;
O1:     do
        :: mapped_path == NONE -> break
#ifdef MUTATION_REMOVER_LOOKS_LIKE_A_RANK
        :: atomic {
            mapped_path != NONE && pair[mapped_path].rank_lock == FREE -> stale = mapped_path;
            pair[stale].rank_lock = OWNER(me)
        };
            mapped_path = NONE;
            d_step { pair[stale].rank_lock = FREE; stale = NONE }
#else
        :: atomic { mapped_path != NONE && pair[mapped_path].rank_lock == FREE -> mapped_path = NONE }
#endif
        od;
#ifdef MUTATION_VERSION_FIRST
        pair[me].version = true;
#endif
        mapped_path = me;
        pair[me].rank_lock = OWNER(me);
        claim_pipe(request_path, pair[me].request_writer);
        claim_pipe(notification_path, pair[me].notification_reader);        /* also O3 */
#if STREAM
        d_step { pair[me].start = saved; asked = (saved > asked -> saved : asked) };
#endif
O4:     request_pipe[me]!ATTACH, me;
        pair[me].version = true
        };

receive_or_release:
        number = 0;
        d_step { kind = 0; generation = 0; before = 0 };
        if
        :: !IS_FULL || nempty(notification_pipe[me]) ->
#if STREAM
            pass();
#endif
            goto R1
        :: expected > released && !IS_NEWEST(released) ->
            ONE_STEP {
            number = released;
            do
            :: number < expected - 1 -> number++
            :: held[SLOT(number)] && !IS_NEWEST(number) -> break
            :: (!held[SLOT(number)] || IS_NEWEST(number)) && number == expected - 1 -> number = released; break
            od;
            read_in_place(number)
            };
            release(number);
            goto receive_or_release
#if STOPS
        :: stop(STOPPED); goto leave
#endif
        fi;

        ONE_STEP {
        skip;
R1:     if
        :: atomic { nempty(notification_pipe[me]) -> notification_pipe[me]?kind, number, generation }
        :: empty(notification_pipe[me]) && IS_FULL -> goto receive_or_release
        :: timeout ->
            assert(tasks_running == 0 || a_task_stalls);
            /* The message mentions an attached task only if there is one. */
            assert(pair[me].task_lock == FREE || pair[me].attached || !pair[me].schema_columns);
            stop(TIMED_OUT);
            goto leave
        fi;

R2:     if
        :: generation != me -> goto receive_or_release
        :: else
        fi;
        if
        :: kind == FAILURE -> outcome = FAILED_BY_SPARK; goto leave
#ifndef MUTATION_NO_DROP
        :: kind != FAILURE && number < expected -> goto receive_or_release
#endif
        :: else
        fi;

R3:     skip;
        d_step {
            assert(number == expected);
            assert(pair[me].published > number);
            assert(pair[me].published <= released + SLOTS);
            assert(kind == KIND(START(me) + number));
            assert(pair[me].schema_columns || kind != BLOCK);
            assert(pair[me].copy[SLOT(number)] == MARK(number));
#if FOREIGN
            check_reference();
#endif
            /* R4 */
            assert(number == pair[me].taken);
            pair[me].taken++;
            expected++;
            held[SLOT(number)] = true
        }
        };
#ifdef MUTATION_RELEASE_BEFORE_READ
        release(number);
        read_in_place(number);
#else
        if
#if STREAM
        :: kind == BLOCK -> newest = number; goto receive_or_release
        :: kind == END_OF_EPOCH -> release(number); is_after_end = true; save(); goto receive_or_release
#else
        :: kind == BLOCK -> goto receive_or_release
        :: kind == END_OF_EPOCH -> release(number); goto receive_or_release
#endif
        :: kind == END_OF_DATA -> release(number)
        fi;
#endif
        if
        :: kind != END_OF_DATA -> goto receive_or_release
        :: else
        fi;

        /* supply_close() after the end of data: releases the blocks that are still held. */
        do
        :: expected > released ->
            number = released;
            read_in_place(number);
            release(number)
        :: else -> break
        od;
#ifndef MUTATION_NO_END_SEEN
E4:     do
        :: pair[me].end_seen -> break
#ifndef MUTATION_E4_DOES_NOT_READ
        :: atomic { nempty(notification_pipe[me]) -> notification_pipe[me]?kind, number, generation };
            if
            :: kind == FAILURE && generation == me -> break
            :: else -> d_step { kind = 0; number = 0; generation = 0 }
            fi
#endif
        :: timeout -> assert((tasks_running == 0 && !succeeded && task_outcome[ATTEMPTS] != DELIVERED) || a_task_stalls); break
        od;
#endif
        outcome = SUCCEEDED;

leave:  ONE_STEP {
        /* The mapped file first, so that no task attaches to a pair that is being closed. */
        mapped_path = NONE;
        pair[me].rank_lock = FREE;
        notification_path = NONE;
        pair[me].notification_reader = false;
        request_path = NONE;
        pair[me].request_writer = false
        }
    } unless {
        if
        :: atomic { rank_killed[me] -> outcome = DIED }
#if RANK_STALLS
        :: rank_stopped[me] && !rank_killed[me] ->
end_stalled: atomic { rank_killed[me] -> outcome = DIED }
#endif
        fi
    };

    /* The end of a process: the kernel closes its descriptors in any order. */
    ONE_STEP {
    do
    :: atomic { pair[me].rank_lock == OWNER(me) -> pair[me].rank_lock = FREE }
    :: atomic { pair[me].notification_reader -> pair[me].notification_reader = false }
    :: atomic { pair[me].request_writer -> pair[me].request_writer = false }
    :: atomic { pair[me].rank_lock != OWNER(me) && !pair[me].notification_reader && !pair[me].request_writer -> break }
    od
    };
    atomic {
        rank_outcome[me] = outcome;
        ranks_running = ranks_running - !rank_stopped[me];
        /* Unused values are reset, so that spin does not distinguish states by them. */
        rank_killed[me] = false;
        expected = 0; released = 0; before = 0; number = 0; generation = 0; kind = 0; unread = 0; outcome = 0;
#if STREAM
        newest = 0; is_after_end = false;
#endif
        do
        :: before < SLOTS -> held[before] = false; before++
        :: else -> break
        od;
        do
        :: nempty(notification_pipe[me]) -> notification_pipe[me]?_, _, _
        :: empty(notification_pipe[me]) -> break
        od
    }
}

/* The task's side of a pair: the Scala packages supply.pair, supply.block and supply.task. */

inline fail(why) {
    outcome = why;
    goto failed
}

/* Drops the lock of A3, to wait again. */
inline detach() {
    if
    :: has_lock -> d_step { pair[generation].task_lock = FREE; has_lock = false }
    :: else
    fi
}

/* P4. One write of less than PIPE_BUF: complete, or EPIPE; blocks while the pipe is full. */
inline notify(kind, number) {
    if
    :: !pair[notifications].notification_reader -> fail_by_rank_that_left()
    :: atomic {
        pair[notifications].notification_reader && nfull(notification_pipe[notifications]) ->
        notification_pipe[notifications]!kind, number, generation
    }
#ifndef MUTATION_P4_WITHOUT_A_LIMIT
    :: timeout -> assert(a_rank_stalls); fail(TIMED_OUT)
#endif
#if STREAM
    :: IS_SIGNAL && full(notification_pipe[notifications]) -> fail(TIMED_OUT)
#endif
    fi
}

/* The other end of a pipe is closed: STOP may be unread, but the rank's text stays in the mapping. */
inline fail_by_rank_that_left() {
#ifndef MUTATION_TEXT_IS_NOT_READ
    if
    :: pair[generation].rank_failure -> fail(FAILED_BY_RANK)
    :: else
    fi;
#endif
    assert(!pair[generation].rank_failure);
    fail(RANK_LEFT)
}

/* An attempt that died has reported to the driver that the rank has everything; it may not have notified the rank. */
inline end_if_recorded() {
    if
    :: recorded && !delivers && IS_ANSWERED ->
#ifndef MUTATION_RECORDED_RANK_IS_LEFT_WAITING
        if
        :: atomic { IS_END && mapped_path != NONE && pair[mapped_path].has_run -> pair[mapped_path].end_seen = true }
        :: !IS_END || mapped_path == NONE || !pair[mapped_path].has_run
        fi;
#endif
        outcome = SUCCEEDED;
        succeeded = succeeded || IS_HEARD;
        goto close
    :: else
    fi
}

/* E2. */
inline report_to_driver() {
    if
    :: atomic { IS_ANSWERED -> recorded = true }
    :: !IS_ANSWERED -> fail(RANK_LEFT)
    fi
}

/* No rank came, or another attempt has the task's lock. */
inline fail_to_attach() {
    /* The rank is notified of Spark's failure, whatever an attempt does. */
    assert(ranks_running == 0 || a_rank_stalls || (a_task_stalls && (!delivers || !pair[generation].has_run)));
#ifndef MUTATION_ATTEMPTS_DO_NOT_ASK
    end_if_recorded();
#endif
    /* Not because the rank has everything and has exited. */
    assert(rank_outcome[RANKS - 1] != SUCCEEDED || delivers || a_task_stalls || !IS_HEARD);
    fail(TIMED_OUT)
}

/* Until the rank has released all below `number`: reads the header first, waits for a request only without credit. */
inline await_released(limit) {
    released = (released < limit -> pair[generation].released : released);
    do
    :: released >= limit -> break
    :: atomic { released < limit && nempty(request_pipe[requests]) -> request_pipe[requests]?request, from };
        released = pair[generation].released;
        if
        :: request == STOP && from == generation -> fail(FAILED_BY_RANK)
        :: else -> d_step { request = 0; from = 0 }
        fi
#ifndef MUTATION_REQUEST_WRITER_KEPT
    :: released < limit && empty(request_pipe[requests]) && !pair[requests].request_writer ->
        released = pair[generation].released;
        if
        :: released == sequence && sequence > 0
        :: else -> fail_by_rank_that_left()
        fi
#endif
    :: released < limit && timeout -> assert(a_rank_stalls); fail(TIMED_OUT)
    od
}

/* `delivers`: not an attempt, but the small job that notifies the rank that Spark has failed. */
proctype Task(byte me; bool delivers; byte until, job) {
    byte generation, requests, notifications;   /* of the mapped file and of the pipes that it has open */
    byte sequence, released, position, number, from;
    bool has_lock, is_attached;
#if STREAM
    bool has_acknowledged;
#endif
#if RESIDENT_FILE
    bool writes_file;
#endif
    mtype request;
    mtype outcome;
    {
        ONE_STEP {
        outcome = RUNNING;
#ifndef MUTATION_ATTEMPTS_DO_NOT_ASK
        end_if_recorded();
#endif
A1:     if
        :: atomic { mapped_path != NONE && pair[mapped_path].version -> generation = mapped_path }
        :: timeout -> fail_to_attach()
        :: IS_SIGNAL -> fail(TIMED_OUT)
        fi;
A2:     if
        :: pair[generation].rank_lock != FREE
        :: pair[generation].rank_lock == FREE && mapped_path != generation -> goto A1
        :: timeout -> fail_to_attach()
        :: IS_SIGNAL -> fail(TIMED_OUT)
        fi;
A3:     if
#ifdef MUTATION_NO_TASK_LOCK
        :: true
#else
        :: atomic { pair[generation].task_lock == FREE -> pair[generation].task_lock = OWNER(me); has_lock = true }
#endif
#ifndef MUTATION_DELIVERY_WAITS_FOR_THE_LOCK
        :: delivers && pair[generation].has_run                             /* D2 */
#endif
        :: pair[generation].rank_lock == FREE -> goto A1
        :: timeout -> fail_to_attach()
        :: IS_SIGNAL -> fail(TIMED_OUT)
        fi;
        if
        :: has_lock && !delivers -> pair[generation].has_run = true
        :: else
        fi;
        /* A pipe may be missing only if the rank is dead. */
A4:     if
        :: request_path != NONE -> requests = request_path
        :: request_path == NONE -> assert(pair[generation].rank_lock == FREE); goto A4_again
        fi;
        if
        :: notification_path != NONE -> notifications = notification_path
        :: notification_path == NONE -> assert(pair[generation].rank_lock == FREE); goto A4_again
        fi;
#ifndef MUTATION_A4_WITHOUT_A2
        if
        :: pair[generation].rank_lock == FREE -> goto A4_again
        :: pair[generation].rank_lock != FREE
        fi;
#endif
        if
        :: delivers -> notify(FAILURE, 0); outcome = DELIVERED; goto close      /* D4 */
        :: else
        fi;
        d_step { is_attached = true; pair[generation].attached++ }
        goto A5;

A4_again:
        detach();
        goto A1
        };

A5:     sequence = pair[generation].published;
        released = pair[generation].released;
        number = released;
#ifdef MUTATION_RESUMES_AFTER_RELEASED
        sequence = released;
#endif
#ifndef MUTATION_NO_REPLAY
        do
        :: number < sequence ->
            assert(pair[generation].copy[SLOT(number)] == MARK(number));
            notify(KIND(START(generation) + number), number);
            number++
        :: else -> number = 0; break
        od;
#endif
#if STREAM
        if
        :: IS_SIGNAL -> outcome = SUCCEEDED; goto close
        :: else
        fi;
#endif
        ONE_STEP {
        skip;
A6:     pair[generation].schema_columns = true;
        if
        :: sequence > 0 -> position = START(generation) + pair[generation].copy[SLOT(sequence - 1)]
        :: else -> position = START(generation)
        fi;
#if STREAM
        follow()
#endif
#if RESIDENT_FILE
        choose_file();
#endif
        };

        do
        :: START(generation) + sequence < UNTIL ->
P1:
#ifdef MUTATION_RING_OFF_BY_ONE
            await_released(sequence - SLOTS);
#else
            await_released(sequence + 1 - SLOTS);
#endif
#ifdef MUTATION_P3_BEFORE_P2
            pair[generation].published = sequence + 1;
#endif
#if RESIDENT_FILE && !defined(MUTATION_F3_AFTER_P3)
            seal_file();
#endif
            ONE_STEP {
            skip;
P2:         position++;
#if FOREIGN
#ifdef MUTATION_ENTRY_AFTER_P3
            pair[generation].window_file[SLOT(sequence)] = FILE_OF(position);
#else
            refer();
#endif
#endif
            d_step { assert(pair[generation].attached == 1); pair[generation].values[SLOT(sequence)] = (IS_IN_FILE(sequence) -> 0 : position) };
            pair[generation].copy[SLOT(sequence)] = MARK(sequence);
#if RESIDENT_FILE
            assert(!IS_IN_FILE(sequence) || pair[generation].file_is_sealed);
#ifndef MUTATION_F2_AFTER_P3
            write_into_file();
#endif
#endif
#ifdef MUTATION_P4_BEFORE_P3
            notify(KIND(START(generation) + sequence), sequence);
#endif
P3:         pair[generation].published = sequence + 1;
            d_step {
                assert(pair[generation].attached == 1);
                assert(pair[generation].published <= pair[generation].released + SLOTS);
                sequence++
            }
            };
#ifdef MUTATION_F2_AFTER_P3
            sequence--;
            write_into_file();
            sequence++;
#endif
#ifdef MUTATION_F3_AFTER_P3
            sequence--;
            seal_file();
            sequence++;
#endif
#ifdef MUTATION_ENTRY_AFTER_P3
            sequence--;
            refer();
            sequence++;
#endif
#ifndef MUTATION_P4_BEFORE_P3
            notify(KIND(START(generation) + sequence - 1), sequence - 1)    /* P4 */
#endif
        :: else -> break
        od;
#if STREAM
        if
        :: !IS_END -> await_acknowledged(); report_to_driver(); goto done
        :: IS_END
        fi;
#endif
#ifndef MUTATION_NO_WAIT_AT_THE_END
E1:     await_released(sequence);
#endif
E2:     report_to_driver();
E3:     pair[generation].end_seen = true;
#if STREAM
done:
#endif
        outcome = SUCCEEDED;
        succeeded = succeeded || IS_HEARD;
        goto close;

failed: /* RankException: Spark does not retry. */
        has_failed = has_failed || IS_HEARD;
close:  skip
    } unless {
        if
        :: atomic { task_killed[me] -> outcome = DIED }
#if TASK_STALLS
        :: task_stopped[me] && !task_killed[me] ->
end_stalled: atomic { task_killed[me] -> outcome = DIED }
#endif
        fi
    };

    /* Pair.close(), or the end of the process: the kernel closes its descriptors. */
    atomic {
        pair[generation].attached = pair[generation].attached - is_attached;
        is_attached = false
    };
    ONE_STEP {
#if STREAM
    forget_unpublished_end();
#endif
    if
    :: atomic { has_lock -> pair[generation].task_lock = FREE; has_lock = false }
    :: !has_lock
    fi
    };
    atomic {
        task_outcome[me] = outcome;
        tasks_running = tasks_running - !task_stopped[me];
        /* Unused values are reset, so that spin does not distinguish states by them. */
        task_killed[me] = false;
        generation = 0; requests = 0; notifications = 0; sequence = 0; until = 0; job = 0; released = 0; position = 0; number = 0; from = 0;
        request = 0;
#if RESIDENT_FILE
        writes_file = false;
#endif
        outcome = 0
    }
}

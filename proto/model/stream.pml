/*
 * What a stream has beside a run (PROTOCOL.md, *Streams*): a job for each batch, which is an epoch, and one for the end; and C3. As in
 * supply/{SupplyStream,task/StreamPart,task/StreamSignal,task/PinnedTask,pair/Credit}.scala and mpi-client/src/{pair,receive}.c.
 *
 * A position is a number of the whole stream: number 0 of a pair is that of the position which its rank has brought.
 */

byte batch;                 /* where the driver is; BATCHES: at the end */
byte last = NONE;           /* the position of END_OF_DATA, once it is known */
byte saved;                 /* the position that the rank's program has saved last */
byte asked;                 /* the one up to which a rank, or the one before it, has asked for more */
byte jobs;                  /* how many all drivers together have started, */
byte attempts;              /* and attempts of their tasks */
hidden byte forgotten;      /* slots of the first rank's ring */
#ifdef MUTATION_A_RECORD_FOR_ALL_JOBS
byte first_job;             /* of the present driver */
#endif

/* C3: the program asks for what follows END_OF_EPOCH. */
inline pass() {
    if
    :: is_behind_end ->
        is_behind_end = false;
#ifdef MUTATION_C3_WAKES_FIRST
        wake_task();
#endif
        asked = START(me) + expected;
#ifndef MUTATION_NO_C3
        pair[me].acknowledged = expected;
#endif
#ifndef MUTATION_C3_WAKES_FIRST
        wake_task()
#endif
    :: else
    fi
}

/* END_OF_EPOCH has come: the program saves where it stands, and only then asks for more. */
inline save() {
#ifdef MUTATION_C3_BEFORE_THE_PROGRAM_SAVES
    pass();
#endif
#ifdef MUTATION_SAVES_WHAT_IS_RELEASED
    saved = START(me) + released
#else
    saved = START(me) + expected
#endif
}

/* A6: the position is in this batch, or behind it. A next attempt for the end goes on with the one that it finds. */
inline follow() {
    if
    :: IS_END && last == NONE -> last = position
    :: IS_END && last != NONE
    :: !IS_END && last < position -> fail(RANK_LEFT)        /* The pair is at its end: another rank is to come. */
    :: !IS_END && last >= position ->
        d_step {
            /* A rank has had what was committed; but an attempt of a job that has ended may be behind. */
            assert(!IS_HEARD || position >= until - EPOCH);
            assert(!IS_HEARD || position <= until)
        }
    fi
}

/* Who has come to end the stream, and died before END_OF_DATA was there: it may come in another place. */
inline forget_unpublished_end() {
    if
    :: has_lock && IS_END && START(generation) + pair[generation].published <= last -> last = NONE
    :: else
    fi
}

/* Behind END_OF_EPOCH the rank asks for more. As await_released(): looks at the header, then waits for a request. */
inline await_passed() {
#ifdef MUTATION_A_BATCH_ENDS_WHEN_IT_IS_PUBLISHED
    skip
#elif defined(MUTATION_A_BATCH_ENDS_WHEN_IT_IS_RELEASED)
    await_released(sequence)
#else
    has_passed = (pair[generation].acknowledged >= sequence);
    do
    :: has_passed -> has_passed = false; break
    :: atomic { !has_passed && nempty(request_pipe[requests]) -> request_pipe[requests]?request, from };
        has_passed = (pair[generation].acknowledged >= sequence);
        if
        :: request == STOP && from == generation -> fail(TOLD_BY_RANK)
        :: else -> d_step { request = 0; from = 0 }
        fi
    :: !has_passed && empty(request_pipe[requests]) && !pair[requests].request_writer ->
        has_passed = (pair[generation].acknowledged >= sequence);
        if
        :: has_passed
        :: else -> fail_by_rank_that_left()
        fi
    :: !has_passed && timeout -> assert(a_rank_stalls); fail(TIMED_OUT)
    od
#endif
}

/* Both sides have ended: nobody asks for what the first rank has left but for the position that it has saved. */
inline forget_first_rank() {
    d_step {
        pair[0].published = 0; pair[0].acknowledged = 0; pair[0].taken = 0; pair[0].writer_came = false;
        forgotten = 0;
        do
        :: forgotten < SLOTS -> pair[0].copy[forgotten] = 0; pair[0].values[forgotten] = 0; forgotten++
        :: else -> break
        od;
        do
        :: nempty(request_pipe[0]) -> request_pipe[0]?_, _
        :: empty(request_pipe[0]) -> break
        od
    }
}

inline start_job() {
    d_step { jobs++; recorded = false; succeeded = false; given_up = false }
}

inline start_attempt() {
    start_task(attempts, false, (batch == BATCHES -> NONE : (batch + 1) * EPOCH), jobs);
    attempts++
}

/* Who is not heard any more may live on, or be killed. */
inline leave_task() {
    if
    :: atomic { task_outcome[attempts - 1] == RUNNING -> task_killed[attempts - 1] = true }
    :: true
    fi
}

/* Spark's driver: batch after batch, at last the end; and the next one, with the same checkpoint, where it has died or its query has failed. */
proctype Driver() {
    byte died, failed, zombies;

begin:
    start_job();
    start_attempt();
end_waiting:
    do
    :: succeeded && batch == BATCHES -> break
    :: succeeded && batch < BATCHES ->
        /* No batch is taken as done before its rank has had all of it, and asked for more. */
        assert(asked >= (batch + 1) * EPOCH);
        batch++;
        goto begin
    :: !succeeded && !given_up && task_outcome[attempts - 1] == DIED -> start_attempt()
#if ZOMBIE
    :: !succeeded && !given_up && task_outcome[attempts - 1] == RUNNING && zombies < ZOMBIE -> zombies++; start_attempt()
#endif
#if DRIVER_DEATHS
    :: died < DRIVER_DEATHS && batch < BATCHES ->
        died++;
#ifdef MUTATION_A_RECORD_FOR_ALL_JOBS
        first_job = jobs + 1;
#endif
        leave_task();
        goto begin
#endif
#if QUERY_STOPS
    :: batch < BATCHES -> batch = BATCHES; leave_task(); goto begin             /* In the middle of a batch, or between two. */
#endif
    :: given_up && RANKS > 1 && failed < RANK_DEATHS && rank_outcome[RANKS - 1] == RUNNING -> failed++; goto begin
    :: given_up && (RANKS == 1 || failed == RANK_DEATHS) ->
#if DELIVERY
        start_task(ATTEMPTS, true, 0, jobs);
#endif
        break
    od;
    driver_ended = true
}

#if SIGNALS
/* In pauses: attaches, and leaves at once. */
proctype Signals() {
    start_task(SIGNAL, false, 0, NONE)
}
#endif

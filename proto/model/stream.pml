/*
 * What a stream adds to a run (PROTOCOL.md, *Streams*): a job for each batch (an epoch), one for the end, and C3. As in SupplyStream,
 * StreamPart, PinnedTask and Credit of the Scala side, and mpi-client/src/{pair/pair,api/receive}.c.
 *
 * A position is a number in the whole stream: number 0 of a pair is the position that its rank brought.
 */

byte batch;                 /* where the driver is; BATCHES: at the end */
byte last = NONE;           /* the position of END_OF_DATA, once it is known */
byte saved;                 /* the last position that the rank's program saved */
byte asked;                 /* the position up to which a rank, or the rank before it, has asked for more */
byte jobs;                  /* how many all drivers together have started, */
byte attempts;              /* and attempts of their tasks */
hidden byte forgotten;      /* slots of the first rank's ring */
#ifdef MUTATION_A_RECORD_FOR_ALL_JOBS
byte first_job;             /* of the present driver */
#endif

/* C3: the program asks for what follows END_OF_EPOCH. */
inline pass() {
    if
    :: is_after_end ->
        is_after_end = false;
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

/* END_OF_EPOCH has come: the program saves its position, and only then asks for more. */
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

/* A6: the position is in this batch, or after it. The next attempt for the end continues with the one that it finds. */
inline follow() {
    if
    :: IS_END && last == NONE -> last = position
    :: IS_END && last != NONE
    :: !IS_END && last < position -> fail(RANK_LEFT)        /* The pair is at its end: another rank must come. */
    :: !IS_END && last >= position ->
        d_step {
            /* A rank has had all committed batches; but an attempt of a job that has ended may lag. */
            assert(!IS_HEARD || position >= until - EPOCH);
            assert(!IS_HEARD || position <= until)
        }
    fi
}

/* A task of the end died before END_OF_DATA was published: it may come at another position. */
inline forget_unpublished_end() {
    if
    :: has_lock && IS_END && START(generation) + pair[generation].published <= last -> last = NONE
    :: else
    fi
}

/* After END_OF_EPOCH the rank asks for more. As await_released(): reads the header, then waits for a request. */
inline await_acknowledged() {
#ifdef MUTATION_A_BATCH_ENDS_WHEN_IT_IS_PUBLISHED
    skip
#elif defined(MUTATION_A_BATCH_ENDS_WHEN_IT_IS_RELEASED)
    await_released(sequence)
#else
    has_acknowledged = (pair[generation].acknowledged >= sequence);
    do
    :: has_acknowledged -> has_acknowledged = false; break
    :: atomic { !has_acknowledged && nempty(request_pipe[requests]) -> request_pipe[requests]?request, from };
        has_acknowledged = (pair[generation].acknowledged >= sequence);
        if
        :: request == STOP && from == generation -> fail(FAILED_BY_RANK)
        :: else -> d_step { request = 0; from = 0 }
        fi
    :: !has_acknowledged && empty(request_pipe[requests]) && !pair[requests].request_writer ->
        has_acknowledged = (pair[generation].acknowledged >= sequence);
        if
        :: has_acknowledged
        :: else -> fail_by_rank_that_left()
        fi
    :: !has_acknowledged && timeout -> assert(a_rank_stalls); fail(TIMED_OUT)
    od
#endif
}

/* Both sides have ended: of the first rank, only the saved position is still used. */
inline forget_first_rank() {
    d_step {
        pair[0].published = 0; pair[0].acknowledged = 0; pair[0].taken = 0;
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
    d_step { jobs++; recorded = false; succeeded = false; has_failed = false }
}

inline start_attempt() {
    start_task(attempts, false, (batch == BATCHES -> NONE : (batch + 1) * EPOCH), jobs);
    attempts++
}

/* An attempt that the driver no longer follows may live on, or be killed. */
inline leave_task() {
    if
    :: atomic { task_outcome[attempts - 1] == RUNNING -> task_killed[attempts - 1] = true }
    :: true
    fi
}

/* Spark's driver: batch after batch, then the end. If it dies or its query fails, the next one uses the same checkpoint. */
proctype Driver() {
    byte died, failed, zombies;

begin:
    start_job();
    start_attempt();
end_waiting:
    do
    :: succeeded && batch == BATCHES -> break
    :: succeeded && batch < BATCHES ->
        /* No batch is done before its rank has had all of it and asked for more. */
        assert(asked >= (batch + 1) * EPOCH);
        batch++;
        goto begin
    :: !succeeded && !has_failed && task_outcome[attempts - 1] == DIED -> start_attempt()
#if ZOMBIE
    :: !succeeded && !has_failed && task_outcome[attempts - 1] == RUNNING && zombies < ZOMBIE -> zombies++; start_attempt()
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
    :: has_failed && RANKS > 1 && failed < RANK_DEATHS && rank_outcome[RANKS - 1] == RUNNING -> failed++; goto begin
    :: has_failed && (RANKS == 1 || failed == RANK_DEATHS) ->
#if DELIVERY
        start_task(ATTEMPTS, true, 0, jobs);
#endif
        break
    od;
    driver_ended = true
}

#if SIGNALS
/* The heartbeat of an idle stream: attaches, and leaves at once. */
proctype Signals() {
    start_task(SIGNAL, false, 0, NONE)
}
#endif

/* What must hold when every process has ended. */

init {
    byte i, died;
#if STALE
    /* A rank of an earlier run was killed while it held the first block. */
    d_step {
        pair[0].version = true;
        pair[0].schema_columns = true;
        pair[0].published = 1;
        pair[0].copy[0] = MARK(0);
        pair[0].values[0] = MARK(0);
        mapped_path = 0;
        request_path = 0;
        notification_path = 0;
        rank_outcome[0] = DIED
    }
#endif
    run Fate();
    run Launcher();
    run Driver();
#if STREAM && SIGNALS
    run Signals();
#endif

#define LAST_RANK ((RANKS == 2 && rank_outcome[RANKS - 1] != 0) -> RANKS - 1 : 0)
#define A_RANK_IS_TO_COME (RANKS == 2 && rank_outcome[0] == DIED && rank_outcome[RANKS - 1] == 0)
end_running:
    driver_ended && tasks_running == 0 && ranks_running == 0 && rank_outcome[0] != 0 && !A_RANK_IS_TO_COME;

    d_step {
        i = LAST_RANK;
        /* Nothing is lost. */
        assert(rank_outcome[i] != SUCCEEDED || (pair[i].taken == NUMBERS(i) && pair[i].released == NUMBERS(i)));
        /* A reported success is true. */
        assert(!succeeded || pair[0].released == NUMBERS(0) || pair[i].released == NUMBERS(i));
        /* If the task has attempts left and nothing happens to the rank, the rank gets everything; */
        died = 0;
        do
        :: i < ATTEMPTS -> died = died + (task_outcome[i] == DIED -> 1 : 0); i++
        :: else -> break
        od;
        i = LAST_RANK;
        assert(rank_outcome[i] == SUCCEEDED || died >= (ZOMBIE -> 1 : ATTEMPTS) || STOPS || rank_deaths || a_rank_stalls || a_task_stalls);
        /* and if nothing happens at all, both sides know it. */
        assert((succeeded && !has_failed) || died || ZOMBIE || STOPS || rank_deaths || a_rank_stalls || a_task_stalls);
#if STREAM
        /* A query and a rank that are started again reach the end. */
        assert(succeeded || (rank_deaths && RANKS == 1) || STOPS || a_rank_stalls || a_task_stalls);
#endif
        /* A rank that was notified of Spark's failure does not wait for its timeout. */
        assert(task_outcome[ATTEMPTS] != DELIVERED || rank_outcome[i] != TIMED_OUT || rank_deaths || a_rank_stalls);
        /* Only the dead leave files. */
        assert(rank_outcome[i] == DIED || a_rank_stalls ||
            (mapped_path == NONE && request_path == NONE && notification_path == NONE));
        assert(pair[i].rank_lock == FREE || a_rank_stalls);
        assert((pair[i].task_lock == FREE && !pair[i].attached) || a_task_stalls)
    }
    /* No properties: spin must find a run that ends like this, else the properties above hold only because no run exists. */
#ifdef WITNESS_ONE_DEATH
    assert(!(succeeded && died == 1));
#endif
#ifdef WITNESS_TWO_DEATHS
    assert(!(succeeded && died == 2));
#endif
#ifdef WITNESS_FAILED_BY_SPARK
    assert(rank_outcome[0] != FAILED_BY_SPARK);
#endif
#ifdef WITNESS_NOTIFIED_BESIDE_A_TASK
    assert(rank_outcome[0] != FAILED_BY_SPARK || pair[0].task_lock == FREE);
#endif
#ifdef WITNESS_FAILED_BY_RANK
    assert(task_outcome[0] != FAILED_BY_RANK);
#endif
#ifdef WITNESS_NEW_RANK
    assert(!succeeded || rank_outcome[RANKS - 1] != SUCCEEDED);
#endif
#ifdef WITNESS_STOPPED_IN_BATCH
    assert(!succeeded || last % EPOCH == 0);
#endif
}

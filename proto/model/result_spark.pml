/* Spark: a load (X1 to X3, X5), tasks (X4), release and the session's end. And what must hold when every process has ended. */

#define LIVING (is_alive[0] -> 0 : 1)

/* Locks a sealed file as a reader, and checks that the name still leads to it: `file`, or NONE. */
inline open_sealed(me, executor) {
    file = sealed_name[me];
    if
    :: file == NONE
    :: atomic { file != NONE && !no_readers[file] && is_alive[executor] -> readers[file] = readers[file] | BIT(executor) };
#ifndef MUTATION_X1_DOES_NOT_CHECK_THE_NAME
        if
        :: sealed_name[me] != file -> file = NONE
        :: else
        fi
#endif
    :: !is_alive[executor]
    fi
}

/* What a reader must never see. */
inline check_complete() { assert(sealed[file] == COMPLETE && written[file] == BLOCKS) }

/* Whether the unsealed file says more than "wait". */
#define ENDED(file) (sealed[file] == ABORTED || (magic[file] && !rank_lock[file]))
#define TELLS(me) (sealed_name[me] != NONE || (unsealed_name[me] != NONE && ENDED(unsealed_name[me])))

/* X2, of the file that the unsealed name leads to. */
inline check_unsealed(me) {
    file = unsealed_name[me];
    if
    :: file == NONE
    :: else ->
#ifdef MUTATION_X2_READS_SEALED_FIRST
        is_aborted = (sealed[file] == ABORTED);
#endif
#ifdef MUTATION_X2_DOES_NOT_WAIT_FOR_MAGIC
        has_magic = true;
#else
        has_magic = magic[file];
#endif
        is_free = !rank_lock[file];
#ifndef MUTATION_X2_READS_SEALED_FIRST
        is_aborted = (sealed[file] == ABORTED);
#endif
        if
        :: is_aborted -> outcome = ABORTED_BY_RANK
#ifdef MUTATION_X2_DOES_NOT_CHECK_THE_NAME
        :: !is_aborted && has_magic && is_free ->
#else
        :: !is_aborted && has_magic && is_free && unsealed_name[me] == file ->
#endif
            outcome = RANK_DIED;
            assert(is_dead[file])
        :: else
        fi
    fi;
    d_step { file = NONE; has_magic = false; is_free = false; is_aborted = false }
}

/* Reads a rank's file; if the executor dies, Spark tries again on another one. */
proctype Task(byte me; byte executor) {
    byte file, blocks;

    open_sealed(me, executor);
    if
    :: !is_alive[executor] -> goto end
    :: is_alive[executor] && (file == NONE || GENERATION(file) != GENERATION(found[me])) ->
        /* An error: the next run has begun, Spark has released it, or a cleaner has come while nobody had it open. */
        assert(opened[me] > run_of[found[me]] || is_released || is_over || is_cleaned[found[me]]);
        is_gone[me] = true;
        goto end
    :: else
    fi;
    do
    :: blocks < BLOCKS && is_alive[executor] ->
        atomic {
            assert(file == found[me]);
            check_complete();
            blocks++
        }
    :: !is_alive[executor] -> goto end
    :: blocks == BLOCKS && is_alive[executor] -> has_read[me]++; break
    od;
end:
    atomic { reading--; running-- }
}

inline start_task(me, executor) {
    atomic { reading++; running++; run Task(me, executor) }
}

/* Removes the file if it is the found one, or, at the session's end, if this executor has it open. */
inline remove_found(me, executor, is_wanted) {
    file = sealed_name[me];
    if
    :: file == NONE || !(is_wanted)
    :: else ->
#ifndef MUTATION_RELEASE_TAKES_NO_LOCK
        if
        :: atomic { is_alive[executor] && remover_lock[file] == FREE -> remover_lock[file] = OWNER(executor) }
        :: !is_alive[executor]
        fi;
        atomic {
            if
            :: is_alive[executor] && sealed_name[me] != file -> remover_lock[file] = FREE; file = NONE
            :: else
            fi
        };
#endif
        atomic {
            if
            :: is_alive[executor] && file != NONE ->
                assert(sealed_name[me] == file);
                sealed_name[me] = NONE;
                remover_lock[file] = FREE
            :: else
            fi
        }
    fi;
    file = NONE
}

/* Kernel: all locks of an executor end with it. */
inline end_executor(executor) {
    d_step {
        is_alive[executor] = false;
        i = 0;
        do
        :: i < FILES ->
            readers[i] = readers[i] & ~BIT(executor);
            if
            :: remover_lock[i] == OWNER(executor) -> remover_lock[i] = FREE
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

/* The driver. An executor that dies is replaced by the other one. */
proctype Driver() {
    byte me, executor, i, file = NONE, since[RANKS];
    bool has_magic, is_free, is_aborted, has_polled;

    has_polled = (RANKS > 1);                           /* Other lines poll early. */
    d_step { for (i : 0 .. RANKS - 1) { since[i] = published[i] } i = 0 };
find:
    executor = LIVING;
    me = 0;
    do
    :: me == RANKS -> break
    :: me < RANKS && !is_alive[executor] -> goto find
    :: me < RANKS && is_alive[executor] && (TELLS(me) || !has_polled) ->
        has_polled = has_polled || !TELLS(me);          /* A check may come at any time, and most of them find nothing. */
        open_sealed(me, executor);
        if
        :: !is_alive[executor] -> goto find
        :: is_alive[executor] && file != NONE ->
            atomic {
                check_complete();
                assert(!is_alive[executor] || !is_cleaned[file]);
                assert(run_of[file] >= since[me]);      /* Not of a run before the one that had the pair open. */
                found[me] = file;
                file = NONE;
                me++
            }
        :: is_alive[executor] && file == NONE ->
            check_unsealed(me);
            if
            :: outcome -> goto session_ends
            :: else
            fi
        fi
    :: me < RANKS && timeout ->
        outcome = LIMIT;
        assert(deaths || losses);                       /* Else each load finds the result, or that the rank aborted it. */
        goto session_ends
    od;
#if RANKS > 1
#ifndef MUTATION_RUNS_ARE_NOT_COMPARED
    if
    :: run_of[found[0]] != run_of[found[1]] -> outcome = MIXED; goto session_ends
    :: else
    fi;
#endif
    assert(run_of[found[0]] == run_of[found[1]]);
#endif
    outcome = FOUND;
#if RANKS > 1
    goto session_ends;                                  /* Other lines read one rank's file; tasks share nothing. */
#endif

    me = 0;
    do
    :: me == RANKS -> break
    :: me < RANKS ->
        start_task(me, LIVING);
#if SPECULATION
        start_task(me, 1 - LIVING);
#endif
        (has_read[me] || reading == 0);
        if
        :: has_read[me] -> me++
        :: !has_read[me] && is_gone[me] -> outcome = LOST; goto session_ends
        :: else                                         /* The executor died. */
        fi
    od;

    if
    :: END_IN_ONE_STEP {
        is_released = true;
        me = 0;
        do
        :: me == RANKS -> break
        :: me < RANKS ->
            executor = LIVING;
            remove_found(me, executor, GENERATION(file) == GENERATION(found[me]));
            if
            :: is_alive[executor] -> me++
            :: else
            fi
        od
        };
#if AGAIN
        /* A plan that still refers to the released files must not read others. */
        start_task(0, LIVING);
        reading == 0
#else
        skip
#endif
    :: true
    fi;

session_ends:
    END_IN_ONE_STEP {
        is_over = true;
        executor = 0;
        do
        :: executor == EXECUTORS -> break
        :: executor < EXECUTORS ->
            me = 0;
            do
            :: me < RANKS && is_alive[executor] -> remove_found(me, executor, readers[file] & BIT(executor)); me++
            :: else -> break
            od;
            end_executor(executor);
            executor++
        od;
        running--
    }
}

proctype Fate() {
    byte i;
    do
    :: losses < LOSSES && is_alive[0] -> losses++; end_executor(0)
    :: losses < LOSSES && is_alive[1] -> losses++; end_executor(1)
    :: break
    od;
    running--
}

/* mpirun, and a user who starts the ranks again. */
proctype Launcher(byte me) {
    atomic { running++; run Rank(me, 1) };
#if RUNS > 1
    atomic { opened[me] == 1 && pair_lock[me] == FREE -> running++; run Rank(me, 2) };
#endif
    running--
}

init {
    byte i;
    atomic {
        for (i : 0 .. RANKS - 1) {
            running++;
            run Launcher(i)
        }
#if CLEANS
        for (i : 1 .. CLEANS) {
            running++;
            run Cleaner(0)
        }
#endif
        running = running + 2;
        run Driver();
        run Fate();
        i = 0
    };
    atomic {
        running == 0 -> deaths = DEATHS;
        for (i : 0 .. RANKS - 1) {
            running++;
            run Cleaner(i)
        }
    };
    running == 0;
    for (i : 0 .. RANKS - 1) {
        assert(unsealed_name[i] == NONE && sealed_name[i] == NONE)      /* No file is left. */
    }
    /* No properties: spin must find a run that ends like this, else the properties above hold only because no run exists. */
#ifdef WITNESS
    assert(outcome != WITNESS)
#endif
#ifdef WITNESS_RELEASED
    assert(!is_released || has_read[0] < WITNESS_RELEASED)
#endif
#ifdef WITNESS_NEW_RUN
    assert(outcome != FOUND || run_of[found[0]] != 2)
#endif
}

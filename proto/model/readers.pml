/*
 * Readers of one ring (PROTOCOL.md): a task and the ranks of a group. The steps of one pair are in pair.pml; here they are as coarse as
 * the rules of a group allow. The rank's side: mpi-client/src/pair/{joined_ring,mapped_file,pair}.c; the task's: supply.pair.
 */

/* Settings, each -DNAME=NUMBER. */
#ifndef READERS
#define READERS 2
#endif
#ifndef SLOTS
#define SLOTS 2             /* block_count */
#endif
#ifndef BLOCKS
#define BLOCKS 4            /* sequence numbers of the run, END_OF_DATA included */
#endif
#ifndef NOTIFICATIONS
#define NOTIFICATIONS 2     /* capacity of a notification pipe */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1          /* attempts of the task */
#endif
#ifndef ZOMBIE
#define ZOMBIE 0            /* 1: Spark may start an attempt while the previous one still lives */
#endif
#ifndef GROUPS
#define GROUPS 1            /* 2: each reader that has ended without everything is started again, at its paths */
#endif
#ifndef AGAIN
#define AGAIN 0             /* 1: after a failed attempt the user starts Spark again, for which the next attempt stands */
#endif
#ifndef TASK_DEATHS
#define TASK_DEATHS 0
#endif
#ifndef READER_DEATHS
#define READER_DEATHS 0
#endif
#ifndef TASK_STALLS
#define TASK_STALLS 0       /* a stalled process lives and never takes another step, as under SIGSTOP */
#endif
#ifndef READER_STALLS
#define READER_STALLS 0
#endif
#ifndef STOPS
#define STOPS 0             /* 1: a reader of the first group may fail at any time */
#endif

#define FILES (READERS * GROUPS)
#define READER(file) ((file) % READERS)
#define LAST (BLOCKS - 1)
#define FREE 0
#define NONE 255
#define FAILURE 254         /* a notification; the others are sequence numbers */
#define OWNER(process) ((process) + 1)
#define MARK(sequence) ((sequence) + 1)     /* of a slot: 0 is "nothing written yet" */
#define SLOT(sequence) ((sequence) % SLOTS)

/* How a process has ended. */
mtype = { RUNNING, SUCCEEDED, DIED, STALLED, STOPPED, TIMED_OUT, FAILED_BY_SPARK, FAILED_BY_RANK };

/* The files of a rank: those of the first group, then those of the second one. */
typedef file_state {
    bool version;
    byte ring;              /* generation: the file of reader 0 that has the ring */
    bool attachments;       /* a task has attached */
    byte released;
    byte published;
    bool counts_known;
    bool plan;
    bool rank_failure;      /* and STOP has been sent */
    bool end_seen;

    bool rank_lock;
    byte task_lock;
    bool pipes;             /* the rank has them open */
}
file_state file[FILES];
typedef ring_state {
    byte block[SLOTS];      /* MARK of the sequence number */
    byte tasks;             /* attached ones: must never be 2 */
}
ring_state ring[FILES];
chan notification_pipe[FILES] = [NOTIFICATIONS] of { byte };
byte mapped_path[READERS] = NONE;

byte task_deaths;
byte reader_deaths;
bool has_stopped;           /* a reader */
bool a_task_stalls;
bool a_reader_stalls;
/* Faults that are to come. The others wait for them, so that no timeout expires before. */
byte task_deaths_left;
byte reader_deaths_left;
bool is_to_stop;
bool a_task_is_to_stall;
bool a_reader_is_to_stall;

mtype reader_outcome[FILES];
mtype task_outcome[ATTEMPTS];
byte readers_running;
byte tasks_running;         /* and deliveries */
bool recorded;              /* the driver knows that all readers have everything */
bool succeeded;
bool has_failed;
bool is_delivered;
bool driver_ended;

/* For 2 or 3 readers. */
#define OF_ALL(is_true) (is_true(0) && is_true(1) && is_true(READERS - 1))
#define OF_ONE(is_true) (is_true(0) || is_true(1) || is_true(READERS - 1))

#define READERS_ARE_SOUND (!reader_deaths && !has_stopped && !a_reader_stalls)

/* Each reader of the first group has its own delivery, which waits for it. */
#define HEARS_OF_FAILURE (is_delivered && GROUPS == 1)

#define READER_FATE \
    :: atomic { reader_deaths_left > 0 -> reader_deaths_left--; reader_deaths++; outcome = DIED; goto dead } \
    :: atomic { a_reader_is_to_stall -> a_reader_is_to_stall = false; a_reader_stalls = true; goto stalled }
#define TASK_FATE \
    :: atomic { task_deaths_left > 0 && (!ZOMBIE || me == 0) -> task_deaths_left--; task_deaths++; outcome = DIED; goto close } \
    :: atomic { a_task_is_to_stall && me == 0 -> a_task_is_to_stall = false; a_task_stalls = true; tasks_running--; goto end_stalled }

/* C1. In order: pair.pml has releases in any order. */
inline release() {
    assert(ring[file[me].ring].block[SLOT(file[me].released)] == MARK(file[me].released));
    file[me].released++
}

/* O1 to E4 of a rank; its number is that of its files. */
proctype Reader(byte me) {
    byte expected, number;
    mtype outcome = RUNNING;

    /* O1. A file at the path is a dead rank's, because the launcher starts no second rank beside a living one. */
    atomic {
        assert(mapped_path[READER(me)] == NONE || !file[mapped_path[READER(me)]].rank_lock);
        mapped_path[READER(me)] = me;
        file[me].rank_lock = true;
        file[me].ring = me
    };
    if
    :: READER(me) != 0 ->
join:   if      /* the header of reader 0 */
#ifdef MUTATION_JOINS_AFTER_AN_ATTACHMENT
        :: atomic { mapped_path[0] != NONE && file[mapped_path[0]].version -> number = mapped_path[0] }
#else
        :: atomic { mapped_path[0] != NONE && file[mapped_path[0]].version && !file[mapped_path[0]].attachments -> number = mapped_path[0] }
#endif
        :: timeout -> atomic { outcome = TIMED_OUT; goto leave }
        READER_FATE
        fi;
        if      /* and its lock */
        :: atomic { file[number].rank_lock -> file[me].ring = number; number = 0 }
        :: !file[number].rank_lock && mapped_path[0] != number -> goto join
        :: timeout -> atomic { outcome = TIMED_OUT; goto leave }
        READER_FATE
        fi
    :: READER(me) == 0
    fi;
    if
    :: atomic { true -> file[me].pipes = true; file[me].version = true }            /* O3, O4 */
    READER_FATE
    fi;

    do
    :: atomic {
        nempty(notification_pipe[me]) -> notification_pipe[me]?number;
        if
        :: number == FAILURE -> outcome = FAILED_BY_SPARK; goto leave
        :: number < expected                                                        /* R2 */
        :: number != FAILURE && number >= expected ->                               /* R3 */
            assert(number == expected);
            assert(number < file[me].published);
            assert(file[me].published <= file[me].released + SLOTS);
            assert(ring[file[me].ring].block[SLOT(number)] == MARK(number));
            expected++
        fi;
        number = 0;
        if
        :: expected == BLOCKS -> break
        :: else
        fi
    }
    :: atomic { file[me].released < expected -> release() }
    :: atomic { is_to_stop && me < READERS -> is_to_stop = false; has_stopped = true; outcome = STOPPED; goto stop }
    :: timeout ->
        /* A task that lives supplies the group, unless a rank of it does not live. */
        assert(tasks_running == 0 || a_task_stalls || !READERS_ARE_SOUND);
        assert(!HEARS_OF_FAILURE);
        atomic { outcome = TIMED_OUT; goto stop }
    READER_FATE
    od;
    do
    :: atomic { file[me].released < expected -> release() }
    :: file[me].released == expected -> break
    READER_FATE
    od;
    do                                                                              /* E4 */
    :: atomic { file[me].end_seen || notification_pipe[me]?[FAILURE] -> break }
    :: atomic { nempty(notification_pipe[me]) && !notification_pipe[me]?[FAILURE] -> notification_pipe[me]?_ }
    :: timeout ->
        assert((tasks_running == 0 && !succeeded) || a_task_stalls || !READERS_ARE_SOUND);
        assert(!HEARS_OF_FAILURE);
        break
    READER_FATE
    od;
    atomic { outcome = SUCCEEDED; goto leave };

stop:
    atomic { file[me].rank_failure = true; goto leave };
leave:
    atomic { mapped_path[READER(me)] = NONE; file[me].rank_lock = false };
dead:
    atomic {
        file[me].rank_lock = false;
        file[me].pipes = false;
        reader_outcome[me] = outcome;
        readers_running--;
        /* Unused values are reset, so that spin does not distinguish states by them. */
        expected = 0; number = 0; outcome = 0;
        do
        :: nempty(notification_pipe[me]) -> notification_pipe[me]?_
        :: empty(notification_pipe[me]) -> goto gone
        od
    };
stalled:
    atomic { reader_outcome[me] = STALLED; readers_running-- };
end_stalled:
    false;
gone:
    skip
}

inline fail(why) {
    atomic { outcome = why; has_failed = true; goto close }
}

/* No group came, or another attempt has a lock of it. The driver is asked once more. */
inline fail_to_attach() {
    assert(!READERS_ARE_SOUND || readers_running == 0 || a_task_stalls);
    atomic { is_late = true; goto unlock }
}

/* It has sent STOP, or has ended before it had everything. */
#define IS_LOST(reader) \
    (file[mine[reader]].rank_failure || (!file[mine[reader]].pipes && file[mine[reader]].released < BLOCKS))
#define IS_OF_THE_RING(reader) (file[mine[reader]].ring == mine[0])
#define IS_AT_ITS_PATH(reader) (mapped_path[reader] == mine[reader])

/* The readers that it waits for may have exited. */
#ifdef MUTATION_AN_ATTEMPT_THAT_WAITS_DOES_NOT_ASK
#define ASK_AGAIN
#else
#define ASK_AGAIN :: atomic { recorded -> n = 0; goto ask }
#endif

/* A step for each reader, in their order. */
#define FOR_EACH_READER(step) \
    do \
    :: atomic { n < READERS -> step; n++ } \
    :: atomic { n == READERS -> n = 0; break } \
    TASK_FATE \
    od

/* Until each has released all below `limit`. The task waits at one reader, and looks at the others meanwhile. */
inline await_released(limit, readers) {
    do
    :: atomic { n < readers && file[mine[n]].released >= limit -> n++ }
    :: n < readers && file[mine[n]].released < limit && OF_ONE(IS_LOST) -> fail(FAILED_BY_RANK)
    :: timeout -> assert(a_reader_stalls); fail(TIMED_OUT)
    :: atomic { n == readers -> n = 0; break }
    TASK_FATE
    od
}

/* P4 and the replay of A5: to each of `readers`, from its `first` sequence number on, all below `end`. */
inline notify(first, end, readers) {
    number = first;
    do
    :: atomic {
        n < readers && number < end && file[mine[n]].pipes && nfull(notification_pipe[mine[n]]) ->
        notification_pipe[mine[n]]!number;
        number++
    }
    :: n < readers && number < end && !file[mine[n]].pipes -> fail(FAILED_BY_RANK)
    :: timeout -> assert(a_reader_stalls); fail(TIMED_OUT)
    :: atomic { n < readers && number >= end -> n++; number = (n < readers -> first : 0) }
    :: atomic { n == readers -> n = 0; number = 0; break }
    TASK_FATE
    od
}

/* P2. No rank that has joined the ring may read the slot, also none that the task does not know. */
inline write() {
    d_step {
        assert(ring[mine[0]].tasks == 1);
        do
        :: n < FILES ->
            assert(!file[n].rank_lock || !file[n].version || file[n].ring != mine[0] || sequence < file[n].released + SLOTS);
            n++
        :: else -> n = 0; break
        od;
        assert(OF_ALL(IS_OF_THE_RING));
        ring[mine[0]].block[SLOT(sequence)] = MARK(sequence)
    }
}

/* A5 for reader n, and its plan (A6). */
inline attach() {
    file[mine[n]].attachments = true;
#ifndef MUTATION_A5_DOES_NOT_COPY_PUBLISHED
    assert(file[mine[n]].published <= file[mine[0]].published);
    file[mine[n]].published = file[mine[0]].published;
#endif
#ifndef MUTATION_A5_DOES_NOT_COPY_THE_COUNTS
    file[mine[n]].counts_known = file[mine[0]].counts_known;
#endif
#ifndef MUTATION_A5_DOES_NOT_COPY_THE_PLAN
    file[mine[n]].plan = file[mine[0]].plan;
#endif
    assert(file[mine[n]].released <= file[mine[0]].published && file[mine[0]].published <= file[mine[n]].released + SLOTS);
    /* A6 */
    assert(file[mine[n]].plan || file[mine[n]].published == 0);
    file[mine[n]].plan = true
}

/* After E2: an attempt that died has told the driver that the readers have everything, and may not have told each of them. */
inline let_exit() {
    if
    :: mapped_path[n] != NONE && file[mapped_path[n]].attachments -> file[mapped_path[n]].end_seen = true
    :: else
    fi
}

proctype Task(byte me) {
    byte mine[READERS];     /* the files that it has open */
    byte n, sequence, number;
    bool is_late, is_attached, is_whole;
    mtype outcome = RUNNING;

ask:if
    :: recorded ->
#ifdef MUTATION_READER_0_ALONE_MAY_EXIT
        atomic { let_exit() };
#else
        FOR_EACH_READER(let_exit());
#endif
        goto done
    :: !recorded && is_late -> fail(TIMED_OUT)
    :: !recorded && !is_late
    fi;

A1: if
    :: atomic { mapped_path[n] != NONE && file[mapped_path[n]].version -> mine[n] = mapped_path[n] }
    :: timeout -> fail_to_attach()
    ASK_AGAIN
    TASK_FATE
    fi;
    if
    :: atomic { file[mine[n]].rank_lock -> n++ }                                    /* A2 */
    :: !file[mine[n]].rank_lock && mapped_path[n] != mine[n] -> goto A1
    :: timeout -> fail_to_attach()
    ASK_AGAIN
    TASK_FATE
    fi;
    if
    :: n < READERS -> goto A1
    :: n == READERS -> n = 0
    fi;
#ifndef MUTATION_GENERATIONS_ARE_NOT_COMPARED
    if
    :: OF_ALL(IS_OF_THE_RING)
    :: !OF_ALL(IS_OF_THE_RING) && !OF_ALL(IS_AT_ITS_PATH) -> goto A1
    :: timeout -> fail_to_attach()
    ASK_AGAIN
    TASK_FATE
    fi;
#endif

#ifdef MUTATION_LOCKS_HAVE_NO_ORDER
#define LOCKED (me % 2 -> READERS - 1 - n : n)
#else
#define LOCKED n
#endif
A3: do
#ifdef MUTATION_NO_LOCKS
    :: n < READERS -> n++
#endif
    :: atomic { n < READERS && file[mine[LOCKED]].task_lock == FREE -> file[mine[LOCKED]].task_lock = OWNER(me); n++ }
    :: n < READERS && !file[mine[LOCKED]].rank_lock -> goto unlock
    :: timeout -> fail_to_attach()
    :: atomic { n == READERS -> n = 0; break }
    TASK_FATE
    od;
A4: do      /* and A2 once more: a file whose rank lives has the pipes at their paths */
    :: atomic { n < READERS && file[mine[n]].rank_lock -> n++ }
    :: n < READERS && !file[mine[n]].rank_lock -> goto unlock
    :: atomic { n == READERS -> n = 0; is_attached = true; ring[mine[0]].tasks++; break }
    TASK_FATE
    od;
    FOR_EACH_READER(attach());                                                      /* A5 */
    atomic { sequence = file[mine[0]].published; is_whole = (sequence == 0) };
#ifdef MUTATION_REPLAYS_TO_READER_0
    notify(file[mine[n]].released, sequence, 1);
#else
    notify(file[mine[n]].released, sequence, READERS);
#endif

    do
    :: sequence < BLOCKS ->
#ifdef MUTATION_CREDIT_OF_READER_0
        await_released(sequence + 1 - SLOTS, 1);
#else
        await_released(sequence + 1 - SLOTS, READERS);                              /* P1 */
#endif
        if
        :: sequence == LAST && is_whole -> FOR_EACH_READER(file[mine[n]].counts_known = true)
        :: else
        fi;
        if
        :: write()                                                                  /* P2 */
        TASK_FATE
        fi;
#ifdef MUTATION_NOTIFIES_BEFORE_ALL_ARE_STORED
        file[mine[0]].published = sequence + 1;
        notify(sequence, sequence + 1, READERS);
#endif
#ifdef MUTATION_READER_0_IS_STORED_LAST
        FOR_EACH_READER(file[mine[READERS - 1 - n]].published = sequence + 1);
#else
        FOR_EACH_READER(file[mine[n]].published = sequence + 1);                    /* P3 */
#endif
#ifndef MUTATION_NOTIFIES_BEFORE_ALL_ARE_STORED
        notify(sequence, sequence + 1, READERS);                                    /* P4 */
#endif
        sequence++
    :: sequence == BLOCKS -> break
    od;
#ifdef MUTATION_E1_WAITS_FOR_READER_0
    await_released(BLOCKS, 1);
#else
    await_released(BLOCKS, READERS);                                                /* E1 */
#endif
    if
    :: recorded = true                                                              /* E2 */
    TASK_FATE
    fi;
#ifdef MUTATION_E3_FOR_READER_0
    file[mine[0]].end_seen = true;
#else
    FOR_EACH_READER(file[mine[n]].end_seen = true);                                 /* E3 */
#endif
done:
    atomic { outcome = SUCCEEDED; succeeded = true };
close:
    atomic { ring[mine[0]].tasks = ring[mine[0]].tasks - is_attached; is_attached = false };
    /* In any order: the kernel may close the files of a process that has died. */
unlock:
    do
    :: atomic { file[mine[0]].task_lock == OWNER(me) -> file[mine[0]].task_lock = FREE }
    :: atomic { file[mine[1]].task_lock == OWNER(me) -> file[mine[1]].task_lock = FREE }
#if READERS > 2
    :: atomic { file[mine[2]].task_lock == OWNER(me) -> file[mine[2]].task_lock = FREE }
#endif
    :: else -> n = 0; break
    od;
    if
    :: outcome == RUNNING && is_late -> goto ask
    :: outcome == RUNNING && !is_late -> goto A1
    :: outcome != RUNNING
    fi;
    atomic {
        task_outcome[me] = outcome;
        tasks_running--;
        sequence = 0; number = 0; is_late = false; is_whole = false; outcome = 0;
        do
        :: n < READERS -> mine[n] = 0; n++
        :: else -> n = 0; goto gone
        od
    };
end_stalled:
    false;
gone:
    skip
}

/* D1 to D4, to one reader: its own files say all that is needed. */
proctype Delivery(byte reader) {
    if
    :: atomic {
        mapped_path[reader] != NONE && file[mapped_path[reader]].version && file[mapped_path[reader]].rank_lock &&
        nfull(notification_pipe[mapped_path[reader]]) -> notification_pipe[mapped_path[reader]]!FAILURE
    }
    :: timeout
    fi;
    tasks_running--
}

inline deliver() {
    atomic {
        is_delivered = true;
        do
#ifdef MUTATION_FAILURE_GOES_TO_READER_0
        :: n < 1 ->
#else
        :: n < READERS ->
#endif
            tasks_running++;
            run Delivery(n);
            n++
        :: else -> n = 0; break
        od
    }
}

inline start_task() {
    atomic { task_outcome[next] = RUNNING; tasks_running++; run Task(next); next++ }
}

/* Spark's driver: another attempt for one that died, and the failure delivery when the run has failed. */
proctype Driver() {
    byte n, next;
    start_task();
end_waiting:
    do
    :: succeeded -> break
    :: !succeeded && !has_failed && next < ATTEMPTS &&
        (task_outcome[next - 1] == DIED || (ZOMBIE && task_outcome[next - 1] == RUNNING)) -> start_task()
    :: !succeeded && !recorded && has_failed && AGAIN && next < ATTEMPTS ->
        deliver();
        atomic { tasks_running == 0 -> has_failed = false; start_task() }
    :: !succeeded && !recorded && ((has_failed && (!AGAIN || next == ATTEMPTS)) || (next == ATTEMPTS && task_outcome[next - 1] == DIED)) ->
        deliver();
        break
    :: !succeeded && recorded && next == ATTEMPTS && task_outcome[next - 1] == DIED -> break
    od;
    driver_ended = true
}

inline start_reader(f) {
    atomic { reader_outcome[f] = RUNNING; readers_running++; run Reader(f) }
}

#define IS_TO_COME(reader) \
    (GROUPS == 2 && reader_outcome[reader] != RUNNING && reader_outcome[reader] != SUCCEEDED && reader_outcome[FILES - READERS + reader] == 0)
#define HAS_ENDED(reader) \
    (reader_outcome[reader] != RUNNING && reader_outcome[FILES - READERS + reader] != RUNNING && !IS_TO_COME(reader))

/* mpirun, and a user who starts ranks again. */
proctype Launcher() {
end_waiting:
    do
    :: IS_TO_COME(0) -> start_reader(READERS)
    :: IS_TO_COME(1) -> start_reader(READERS + 1)
#if READERS > 2
    :: IS_TO_COME(2) -> start_reader(READERS + 2)
#endif
    od
}

/* In the ring of the first rank of reader 0, or of the second one. */
#define HAS_EVERYTHING(f, first) (reader_outcome[f] != 0 && file[f].ring == (first) && file[f].released == BLOCKS)
#define HAS_FIRST(reader) (HAS_EVERYTHING(reader, 0) || HAS_EVERYTHING(FILES - READERS + reader, 0))
#define HAS_SECOND(reader) (HAS_EVERYTHING(reader, FILES - READERS) || HAS_EVERYTHING(FILES - READERS + reader, FILES - READERS))
#define IS_WELL(reader) (reader_outcome[reader] == SUCCEEDED)
#define HAS_LEFT(reader) \
    (mapped_path[reader] == NONE || reader_outcome[mapped_path[reader]] == DIED || reader_outcome[mapped_path[reader]] == STALLED)
#define ENDED_WELL(f) (reader_outcome[f] == SUCCEEDED)

init {
    byte i;
    bool is_complete;
    atomic {
        do
        :: i < READERS -> start_reader(i); i++
        :: else -> i = 0; break
        od;
        run Driver();
#if GROUPS == 2
        run Launcher();
#endif
        do
        :: task_deaths_left < TASK_DEATHS -> task_deaths_left++
        :: break
        od;
        do
        :: reader_deaths_left < READER_DEATHS -> reader_deaths_left++
        :: break
        od;
        if
        :: STOPS -> is_to_stop = true
        :: TASK_STALLS -> a_task_is_to_stall = true
        :: READER_STALLS -> a_reader_is_to_stall = true
        :: true
        fi
    };
end_running:
    driver_ended && tasks_running == 0 && OF_ALL(HAS_ENDED);

    d_step {
        do
        :: i < FILES ->
            /* Nothing is lost, and readers know the same. */
            assert(!ENDED_WELL(i) || file[i].released == BLOCKS);
            assert(!ENDED_WELL(i) || !ENDED_WELL(file[i].ring) || file[i].counts_known == file[file[i].ring].counts_known);
            assert(!file[i].rank_lock || reader_outcome[i] == STALLED);
            assert(file[i].task_lock == FREE || a_task_stalls);
            i++
        :: else -> i = 0; break
        od;
        assert(OF_ALL(HAS_LEFT));
        /* A reported success is true, and of one group. */
        is_complete = OF_ALL(HAS_FIRST) || OF_ALL(HAS_SECOND);
        assert(!succeeded || is_complete);
        /* If the task has attempts left and nothing happens to the readers, each gets everything, and both sides know it. */
        assert(!READERS_ARE_SOUND || a_task_stalls || task_deaths >= (ZOMBIE -> 1 : ATTEMPTS) || (succeeded && OF_ALL(IS_WELL)));
    }
    /* No properties: spin must find a run that ends like this, else the properties above hold only because no run exists. */
#ifdef WITNESS_AFTER_DEATHS
    assert(!(succeeded && task_deaths == TASK_DEATHS));
#endif
#ifdef WITNESS_SECOND_RING
    assert(!(succeeded && OF_ALL(HAS_SECOND)));
#endif
#ifdef WITNESS_A_READER_COMES_AGAIN
    assert(!(succeeded && ENDED_WELL(0) && ENDED_WELL(FILES - 1)));
#endif
}

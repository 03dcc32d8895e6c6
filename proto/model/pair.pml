/*
 * A pair, checked by spin. Step names (O1, A1, P1, R1, C1, …) are those of ../PROTOCOL.md; README.md says what
 * the parts stand for, and what was left out. `check` runs it with the settings and properties below.
 */

/* Settings, each -DNAME=NUMBER. */
#ifndef SLOTS
#define SLOTS 2             /* block_count */
#endif
#ifndef BLOCKS
#define BLOCKS 4            /* sequence numbers of the run, ends included: 4 is one epoch of two blocks, 7 two epochs */
#endif
#ifndef NOTIFICATIONS
#define NOTIFICATIONS 4     /* capacity of the notification pipe */
#endif
#ifndef REQUESTS
#define REQUESTS 2          /* capacity of the request pipe */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1          /* attempts of the task */
#endif
#ifndef ZOMBIE
#define ZOMBIE 0            /* 1: Spark may start an attempt while the previous one still lives */
#endif
#ifndef DELIVERY
#define DELIVERY 1          /* 0: the driver dies with its last attempt, and notifies no rank of the failure */
#endif
#ifndef RANKS
#define RANKS 1             /* 2: a rank that died is started again, at the same paths */
#endif
#ifndef STALE
#define STALE 0             /* 1: the first of two ranks died in an earlier run, and left its files */
#endif
#ifndef TASK_DEATHS
#define TASK_DEATHS 0
#endif
#ifndef RANK_DEATHS
#define RANK_DEATHS 0
#endif
#ifndef TASK_STALLS
#define TASK_STALLS 0       /* a stalled process lives and never takes another step, as under SIGSTOP */
#endif
#ifndef RANK_STALLS
#define RANK_STALLS 0
#endif
#ifndef STOPS
#define STOPS 0             /* 1: the rank may fail at any time */
#endif
#ifndef RESIDENT_FILE
#define RESIDENT_FILE 0     /* 1: the blocks of the first epoch are also in a file, and later epochs refer to them there */
#endif
#ifndef FOREIGN
#define FOREIGN 0           /* 1: the values of blocks are in place, those of two blocks in a row in different files */
#endif
#ifndef STREAM
#define STREAM 0            /* 1: a stream. Each epoch is a batch, with a job of its own */
#endif
#if STREAM
#ifndef BATCHES
#define BATCHES 2
#endif
#ifndef EPOCH
#define EPOCH 2             /* numbers of an epoch, its end included */
#endif
#ifndef DRIVER_DEATHS
#define DRIVER_DEATHS 0     /* the next driver continues after the committed batches */
#endif
#ifndef QUERY_STOPS
#define QUERY_STOPS 0       /* 1: query.stop() may come before the last batch is committed */
#endif
#ifndef SIGNALS
#define SIGNALS 0           /* 1: at some time a task attaches and leaves, the heartbeat of an idle stream */
#endif
#undef ATTEMPTS
#define ATTEMPTS (BATCHES + 1 + TASK_DEATHS + ZOMBIE + DRIVER_DEATHS + RANK_DEATHS)
#define SIGNAL (ATTEMPTS + 1)
#define TASKS (ATTEMPTS + 2)
#else
#define EPOCH 3
#define TASKS (ATTEMPTS + 1)
#endif

#define FREE 0
#define NONE 255
#define OWNER(process) ((process) + 1)
#define MARK(sequence) ((sequence) + 1)     /* of a slot: 0 is "nothing written yet" */
#define SLOT(sequence) ((sequence) % SLOTS)
#if STREAM
#define ONE_STEP atomic                     /* the same as in any run; other lines try it step by step */
#define LAST last
#define START(generation) pair[generation].start
#define IS_END (until == NONE)              /* of the stream; else of a batch */
#define UNTIL (IS_END -> last + 1 : until)
#define IS_SIGNAL (job == NONE)
#define IS_HEARD (job == jobs)              /* by Spark: the job of this attempt has not ended, and its driver lives */
#ifdef MUTATION_A_RECORD_FOR_ALL_JOBS
#define IS_ANSWERED (job >= first_job)
#else
#define IS_ANSWERED IS_HEARD                /* by RunRecord; each job has its own */
#endif
#define NUMBERS(generation) (last + 1 - pair[generation].start)
#else
#define LAST (BLOCKS - 1)
#define START(generation) 0
#define ONE_STEP
#define IS_END true
#define UNTIL until
#define IS_SIGNAL false
#define IS_HEARD true
#define IS_ANSWERED true
#define NUMBERS(generation) BLOCKS
#endif
#define KIND(position) ((position) == LAST -> END_OF_DATA : ((position) % EPOCH == EPOCH - 1 -> END_OF_EPOCH : BLOCK))
/* Each later epoch takes the two blocks of the file in the opposite order. */
#if RESIDENT_FILE
#define FILE_BLOCKS (EPOCH - 1)
#define IS_IN_FILE(sequence) ((sequence) >= EPOCH && KIND(sequence) == BLOCK)
#define FILE_BLOCK(sequence) (1 - (sequence) % EPOCH)
#else
#define IS_IN_FILE(sequence) false
#endif
#define FILES 2
#define FILE_OF(position) (((position) - 1) % FILES + 1)
#define IS_FULL (expected == released + SLOTS)

mtype = { BLOCK, END_OF_EPOCH, END_OF_DATA, FAILURE, ATTACH, RELEASE, STOP };
/* How a process has ended. */
mtype = { RUNNING, SUCCEEDED, DIED, STOPPED, TIMED_OUT, FAILED_BY_SPARK, FAILED_BY_RANK, RANK_LEFT, DELIVERED };

/* The state of one generation: the header and the ring of its mapped file, and the kernel's view of it. */
typedef generation_state {
    bool version;
    byte released;
    byte published;
    bool schema_columns;
    bool rank_failure;
    bool end_seen;
#if STREAM
    byte acknowledged;
    byte start;                   /* the start_… fields */
#endif
    bool has_run;                 /* a task has attached. There is one run here, so the pair is known to be its own */
    byte copy[SLOTS];             /* block header: MARK of the sequence number */
    byte values[SLOTS];           /* the elements: MARK of their position in the source */
#if RESIDENT_FILE
    bool file_is_unsealed;        /* the file has its unsealed name, or its sealed one */
    bool file_is_sealed;
    byte file_published;
    byte file_values[2];
#endif

#if FOREIGN
    byte foreign_count;
    byte entry[FILES];             /* foreign_file: 0 is "nothing written yet" */
    byte window_file[SLOTS];       /* of the block: MARK of an entry's index */
#endif

    byte rank_lock;
    byte task_lock;
    bool request_writer;          /* the rank has the request pipe open */
    bool notification_reader;     /* the rank has the notification pipe open */

    byte attached;                /* attempts between A4 and their end: must never be 2 */
    byte taken;                   /* blocks that the rank's program has got */
}
generation_state pair[RANKS];
chan notification_pipe[RANKS] = [NOTIFICATIONS] of { mtype, byte, byte }  /* kind, sequence, generation */
chan request_pipe[RANKS] = [REQUESTS] of { mtype, byte }                  /* kind, generation */

/* The generation of the file at the path; NONE: there is no file. */
byte mapped_path = NONE;
byte request_path = NONE;
byte notification_path = NONE;

/* Deaths and stalls. The failure delivery is the task after the last attempt. */
bool rank_killed[RANKS];
bool rank_stopped[RANKS];
bool task_killed[TASKS];
bool task_stopped[TASKS];
byte task_deaths;
byte rank_deaths;
bool a_task_stalls;
bool a_rank_stalls;

mtype rank_outcome[RANKS];
mtype task_outcome[TASKS];
byte ranks_running;
byte tasks_running;
bool recorded;              /* the driver knows that the rank has everything */
bool succeeded;             /* and that an attempt has ended well */
bool has_failed;              /* an attempt has failed in a way that Spark does not retry */
bool driver_ended;

/* until: the position after the task's last block; NONE: to the end of its stream. */
inline start_task(i, delivers, until, job) {
    d_step { task_outcome[i] = RUNNING; tasks_running++ };
    run Task(i, delivers, until, job)
}

#if STREAM
#include "stream.pml"
#endif
#if RESIDENT_FILE
#include "resident_file.pml"
#endif
#if FOREIGN
#include "foreign.pml"
#endif
#include "rank.pml"
#include "task.pml"

/* Deaths before the end of a stopped stream are as in any run. */
#if STREAM
#define DEATH_TELLS (attempts > 0 && (!QUERY_STOPS || batch == BATCHES))
#else
#define DEATH_TELLS true
#endif

/* In a stream, so are those of a rank that has nothing yet. */
#if STREAM
#define RANK_DEATH_TELLS(i) (pair[i].taken > 0)
#else
#define RANK_DEATH_TELLS(i) true
#endif

/* Kills and stalls processes that still run, as often as the settings allow, at any time. */
#define KILL_TASK(i) \
    :: task_deaths < TASK_DEATHS && DEATH_TELLS && task_outcome[i] == RUNNING && !task_killed[i] -> \
        d_step { task_killed[i] = true; task_deaths++ }
#define KILL_RANK(i) \
    :: rank_deaths < RANK_DEATHS && RANK_DEATH_TELLS(i) && rank_outcome[i] == RUNNING && !rank_killed[i] -> \
        d_step { rank_killed[i] = true; rank_deaths++ }
proctype Fate() {
    do
#if TASK_DEATHS
#if ZOMBIE
    /* The zombie dies: attempts that die one after the other have settings of their own. */
    :: task_deaths < TASK_DEATHS && task_outcome[0] == RUNNING && !task_killed[0] && task_outcome[1] == RUNNING ->
        d_step { task_killed[0] = true; task_deaths++ }
#elif STREAM
    KILL_TASK(attempts - 1)
#else
    KILL_TASK(0)
    KILL_TASK(1)
#if ATTEMPTS > 1
    KILL_TASK(2)
#endif
#endif
#endif
#if RANK_DEATHS
    KILL_RANK(0)
#if RANKS > 1
    KILL_RANK(1)
#endif
#endif
#if TASK_STALLS
    :: !a_task_stalls && task_outcome[0] == RUNNING && !task_killed[0] ->
        d_step { task_stopped[0] = true; a_task_stalls = true; tasks_running-- }
#endif
#if RANK_STALLS
    :: !a_rank_stalls && rank_outcome[0] == RUNNING && !rank_killed[0] ->
        d_step { rank_stopped[0] = true; a_rank_stalls = true; ranks_running-- }
#endif
    :: break
    od
}

inline start_rank(i) {
    d_step { rank_outcome[i] = RUNNING; ranks_running++ };
    run Rank(i)
}

/* mpirun, and a user who starts a rank again. */
proctype Launcher() {
#if STALE
    start_rank(1)
#else
    start_rank(0)
#if RANKS > 1
    ;
end_first_lives:
#if STREAM
    atomic { rank_outcome[0] == DIED && tasks_running == 0 -> forget_first_rank() };
#else
    rank_outcome[0] == DIED;
#endif
    start_rank(1)
#endif
#endif
}

#if !STREAM
/* Spark's driver: another attempt for one that died, and the failure delivery when the run has failed. */
proctype Driver() {
    byte next;
    start_task(0, false, LAST + 1, 0);
    next = 1;
end_waiting:
    do
    :: !succeeded && !has_failed && next < ATTEMPTS &&
        (task_outcome[next - 1] == DIED ||
        (ZOMBIE && task_outcome[next - 1] == RUNNING && (!TASK_DEATHS || pair[0].published > 0))) ->
        start_task(next, false, LAST + 1, 0);
        next++
    :: succeeded -> break
    :: !succeeded && recorded && next == ATTEMPTS && task_outcome[next - 1] == DIED -> break
    :: !succeeded && !recorded && (has_failed || (next == ATTEMPTS && task_outcome[next - 1] == DIED)) ->
#if DELIVERY
        start_task(ATTEMPTS, true, LAST + 1, 0);
#endif
        break
    od;
    driver_ended = true
}
#endif

#include "end.pml"

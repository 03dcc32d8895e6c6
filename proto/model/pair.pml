/*
 * A pair, checked by spin. Step names (O1, A1, P1, R1, C1, …) are those of ../PROTOCOL.md; README.md says what stands
 * for what, and what was left out. `check` runs it with the settings and properties below.
 */

/* Settings, each -DNAME=NUMBER. */
#ifndef SLOTS
#define SLOTS 2             /* block_count */
#endif
#ifndef BLOCKS
#define BLOCKS 4            /* sequence numbers of the run, ends included: 4 is one epoch of two blocks, 7 two epochs */
#endif
#ifndef NOTIFICATIONS
#define NOTIFICATIONS 4     /* what the notification pipe holds */
#endif
#ifndef REQUESTS
#define REQUESTS 2          /* what the request pipe holds */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1          /* how often Spark tries the task */
#endif
#ifndef ZOMBIE
#define ZOMBIE 0            /* 1: Spark may start an attempt while the one before it still lives */
#endif
#ifndef DELIVERY
#define DELIVERY 1          /* 0: the driver dies with its last attempt, and tells nobody that Spark has given up */
#endif
#ifndef RANKS
#define RANKS 1             /* 2: a rank that has died is started anew, at the same paths */
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
#define STOPS 0             /* 1: the rank may give up at any time */
#endif
#ifndef RESIDENT
#define RESIDENT 0          /* 1: the blocks of the first epoch stay, and later ones notify them again; 4 SLOTS or more */
#endif

#define FREE 0
#define NONE 255
#define OWNER(process) ((process) + 1)
#define MARK(sequence) ((sequence) + 1)     /* of a slot: 0 is "nothing written yet" */
#define SLOT(sequence) ((sequence) % SLOTS)
#define LAST (BLOCKS - 1)
#define KIND(sequence) ((sequence) == LAST -> END_OF_DATA : ((sequence) % 3 == 2 -> END_OF_EPOCH : BLOCK))
/*
 * The number whose elements and copy a number stands for, and the slot in which they lie: its own, but where blocks stay.
 * There each later epoch takes the two blocks of the first one in the opposite order.
 */
#if RESIDENT
#define STAY 3              /* resident_count; resident_first is 0 */
#define IS_AGAIN(sequence) ((sequence) >= STAY && (sequence) != LAST)
#define MEANT(sequence) (IS_AGAIN(sequence) -> ((sequence) % 3 == 2 -> 2 : 1 - (sequence) % 3) : (sequence))
#ifdef MUTATION_END_OF_DATA_IN_THE_SLOT_OF_ITS_NUMBER
#define PLACE(sequence) SLOT(MEANT(sequence))
#else
#define PLACE(sequence) SLOT(((sequence) == LAST -> STAY : MEANT(sequence)))
#endif
#else
#define IS_AGAIN(sequence) false
#define MEANT(sequence) (sequence)
#define PLACE(sequence) SLOT(sequence)
#endif
#define IS_FULL (expected == released + SLOTS)

mtype = { BLOCK, END_OF_EPOCH, END_OF_DATA, FAILURE, ATTACH, RELEASE, STOP };
/* How a process has ended. */
mtype = { RUNNING, SUCCEEDED, DIED, STOPPED, TIMED_OUT, TOLD_BY_SPARK, TOLD_BY_RANK, RANK_LEFT, DELIVERED };

/* What one generation has in common: the header and the ring of its mapped file, and what the kernel knows of it. */
typedef generation_state {
    bool version;
    byte released;
    byte published;
    bool schema_columns;
    bool rank_failure;
    bool end_seen;
    bool has_run;                 /* a task has attached: there is one run here, and that the pair is its own is known */
    byte copy[SLOTS];             /* block header: MARK of the sequence number */
    byte values[SLOTS];           /* the elements: MARK of their position in the source */
#if RESIDENT
    bool resident;                /* resident_first and resident_count */
    byte again_sequence[SLOTS];   /* the record: MARK of a number */
    byte again_block[SLOTS];      /* and of the one whose block it stands for */
#endif

    byte rank_lock;
    byte task_lock;
    bool request_writer;          /* the rank has the request pipe open */
    bool notification_reader;     /* the rank has the notification pipe open */
    byte notification_writers;    /* tasks that have the notification pipe open */
    bool writer_came;             /* since the rank's descriptor was opened: else there is no POLLHUP */

    byte attached;                /* attempts between A4 and their end: what must never be 2 */
    byte taken;                   /* blocks that the rank's program has got */
}
generation_state pair[RANKS];
chan notification_pipe[RANKS] = [NOTIFICATIONS] of { mtype, byte, byte }  /* kind, sequence, generation */
chan request_pipe[RANKS] = [REQUESTS] of { mtype, byte }                  /* kind, generation */

/* The generation whose file stands at the path; NONE: nothing does. */
byte mapped_path = NONE;
byte request_path = NONE;
byte notification_path = NONE;

/* What befalls the processes. The failure delivery is the task after the last attempt. */
bool rank_killed[RANKS];
bool rank_stopped[RANKS];
bool task_killed[ATTEMPTS + 1];
bool task_stopped[ATTEMPTS + 1];
byte task_deaths;
byte rank_deaths;
bool a_task_stalls;
bool a_rank_stalls;

mtype rank_outcome[RANKS];
mtype task_outcome[ATTEMPTS + 1];
byte ranks_running;
byte tasks_running;
bool recorded;              /* the driver knows that the rank has everything */
bool succeeded;             /* and that an attempt has ended well */
bool given_up;              /* an attempt has failed in a way that Spark does not retry */
bool driver_ended;

#include "rank.pml"
#include "task.pml"

/* Where blocks stay, deaths before their END_OF_EPOCH are those of any other run. */
#if RESIDENT
#define DEATH_TELLS (pair[0].published >= STAY - 1)
#else
#define DEATH_TELLS true
#endif

/* Kills and stalls whoever still runs, as often as the settings allow, whenever it likes. */
#define KILL_TASK(i) \
    :: task_deaths < TASK_DEATHS && DEATH_TELLS && task_outcome[i] == RUNNING && !task_killed[i] -> \
        d_step { task_killed[i] = true; task_deaths++ }
#define KILL_RANK(i) \
    :: rank_deaths < RANK_DEATHS && rank_outcome[i] == RUNNING && !rank_killed[i] -> \
        d_step { rank_killed[i] = true; rank_deaths++ }
proctype Fate() {
    do
#if TASK_DEATHS
#if ZOMBIE
    /* It is the zombie that dies: attempts that die one after the other have settings of their own. */
    :: task_deaths < TASK_DEATHS && task_outcome[0] == RUNNING && !task_killed[0] && task_outcome[1] == RUNNING ->
        d_step { task_killed[0] = true; task_deaths++ }
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

/* mpirun, by the hand of a user who starts a rank anew. */
proctype Launcher() {
#if STALE
    start_rank(1)
#else
    start_rank(0)
#if RANKS > 1
    ;
end_first_lives:
    rank_outcome[0] == DIED;
    start_rank(1)
#endif
#endif
}

inline start_task(i, delivers) {
    d_step { task_outcome[i] = RUNNING; tasks_running++ };
    run Task(i, delivers)
}

/* Spark's driver: another attempt for one that died, and the failure delivery when it has given up. */
proctype Driver() {
    byte next;
    start_task(0, false);
    next = 1;
end_waiting:
    do
    :: !succeeded && !given_up && next < ATTEMPTS &&
        (task_outcome[next - 1] == DIED ||
        (ZOMBIE && task_outcome[next - 1] == RUNNING && (!TASK_DEATHS || pair[0].published > 0))) ->
        start_task(next, false);
        next++
    :: succeeded -> break
    :: !succeeded && recorded && next == ATTEMPTS && task_outcome[next - 1] == DIED -> break
    :: !succeeded && !recorded && (given_up || (next == ATTEMPTS && task_outcome[next - 1] == DIED)) ->
#if DELIVERY
        start_task(ATTEMPTS, true);
#endif
        break
    od;
    driver_ended = true
}

#include "end.pml"

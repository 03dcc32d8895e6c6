/*
 * Results of ranks, checked by spin: a model of its own. Step names (O1, W1, X1, …) are those of ../PROTOCOL.md, "Block files". As in
 * mpi-client/src/{block/result_file,files/result_names,files/claimed_file}.c, mpi-client/tools/supply_clean.c
 * and the Scala packages supply.results and supply.run. All ranks are of one node.
 */

/* Settings, each -DNAME=NUMBER. */
#ifndef RANKS
#define RANKS 1
#endif
#ifndef RUNS
#define RUNS 1              /* 2: each rank is started again, with the same paths, when the first one has died or closed its pair */
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef DEATHS
#define DEATHS 0            /* of ranks and cleaners, at any step */
#endif
#ifndef LOSSES
#define LOSSES 0            /* of executors, at any step */
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef CLEANS
#define CLEANS 0            /* cleaners, at any time. One more comes when all processes have ended */
#endif
#ifndef SPECULATION
#define SPECULATION 0       /* 1: two copies of each task at once, on two executors */
#endif
#ifndef AGAIN
#define AGAIN 0             /* 1: a rank writes a result of the same name again, if Spark has released the first one */
#endif

#define EXECUTORS 2
#define FILES (RANKS * RUNS + AGAIN + CLEANS)
#if RANKS > 1
#define ONE_STEP atomic                     /* other lines try it step by step */
#else
#define ONE_STEP
#endif
#if RANKS > 1 || RUNS > 1
#define END_IN_ONE_STEP atomic
#else
#define END_IN_ONE_STEP
#endif
#define FREE 0
#define NONE 255
#define ME _pid                             /* owner of a remover's lock: a rank, a cleaner, */
#define OWNER(executor) (200 + (executor))  /* or an executor */
#define BIT(executor) (1 << (executor))
#ifdef MUTATION_THE_PAIR_S_GENERATION
#define GENERATION(file) run_of[file]
#else
#define GENERATION(file) (file)             /* each file has its own */
#endif

mtype = { WRITTEN, COMPLETE, ABORTED };                             /* `sealed` */
mtype = { FOUND, ABORTED_BY_RANK, RANK_DIED, LIMIT, MIXED, LOST };  /* how a load ends */

/* The files, numbered as they are created: */
byte files;
bool magic[FILES];
mtype sealed[FILES];
byte written[FILES];                        /* blocks */
byte run_of[FILES];
bool rank_lock[FILES];
byte remover_lock[FILES];
byte readers[FILES];                        /* BIT of each executor that has a shared lock on READER_LOCK_BYTE, */
bool no_readers[FILES];                     /* and a cleaner's exclusive one */
/* and what no process sees: */
bool is_dead[FILES];                        /* its rank died before it sealed or aborted it */
bool is_cleaned[FILES];                     /* a cleaner removed it */

/* The file of each name, and the rank that has the pair open. */
byte unsealed_name[RANKS] = NONE;
byte sealed_name[RANKS] = NONE;
byte pair_lock[RANKS];
byte opened[RANKS];                         /* runs that have claimed the pair, */
byte published[RANKS];                      /* and have removed what earlier ones left */

bool is_alive[EXECUTORS] = true;            /* executor 0 has supplied the ranks */
byte deaths, losses, aborts, running;

/* What the load has found. */
byte found[RANKS] = NONE;
bool is_released, is_over, is_again;
byte reading, has_read[RANKS], is_gone[RANKS];
mtype outcome;

#define MAY_DIE if :: deaths < DEATHS -> deaths++; goto died :: true fi

/* *Locks*: a remover opens the file of that name, if there is one, and takes its lock. */
inline take(name) {
    atomic { MAY_DIE; file = name };
    if
    :: file == NONE
    :: file != NONE -> atomic { remover_lock[file] == FREE -> remover_lock[file] = ME }
    fi
}

/* The rank's lock is free: if the name still leads to the file, the remover removes it. */
inline unlink(name, is_unneeded, by_cleaner) {
#ifndef MUTATION_A_REMOVER_DOES_NOT_CHECK_THE_NAME
    atomic {
        MAY_DIE;
        if
        :: name != file -> remover_lock[file] = FREE; no_readers[file] = false; file = NONE
        :: else
        fi
    };
#endif
    atomic {
        if
        :: file != NONE ->
            MAY_DIE;
            assert(name == file);           /* No other file has come to this name. */
            assert(is_unneeded);
            is_cleaned[file] = by_cleaner;
            name = NONE;
            remover_lock[file] = FREE;
            no_readers[file] = false
        :: else
        fi
    }
}

inline drop_remover_lock() {
    if
    :: file != NONE && remover_lock[file] == ME -> remover_lock[file] = FREE
    :: else
    fi
}

/* O1. A living process may still write a result of this pair, or be about to drop its lock. */
inline remove_old(name) {
    take(name);
    if
    :: file == NONE
    :: file != NONE && rank_lock[file] -> goto in_use
    :: file != NONE && !rank_lock[file] -> unlink(name, true, false)
    fi
}

#include "result_rank.pml"
#include "result_spark.pml"

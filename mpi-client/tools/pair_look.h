/**
 * One look at one pair from outside. It takes no lock, changes nothing, opens no pipe (an end of a pipe is a sign of
 * life), maps nothing (a file that is cut off would end the tool), waits for nobody, and believes nothing that it
 * reads.
 */
#ifndef PAIR_LOOK_H
#define PAIR_LOOK_H

#include "pair_files.h"

enum pair_state {
    PAIR_ABSENT,    /**< there is no mapped file: its rank has not started, or has ended */
    PAIR_NO_ACCESS, /**< this user may not read it */
    PAIR_INVALID,   /**< what stands there is not what the contract says */
    PAIR_STALE,     /**< its rank is dead */
    PAIR_OPENING,   /**< its rank is about to publish it */
    PAIR_OPEN,      /**< its rank is there, no task has come yet */
    PAIR_SUPPLYING, /**< a task is attached */
    PAIR_PAUSED,    /**< the task has left before the end of data, and its next attempt has not come yet */
    PAIR_ENDING,    /**< END_OF_DATA is published */
    PAIR_ENDED,     /**< the task knows that the rank has everything */
    PAIR_FAILED,    /**< one side has given up */
};

/** Who can not go on before the other does something. */
enum pair_waiting { NOBODY_WAITS, RANK_WAITS, TASK_WAITS };

struct pair_look {
    enum pair_state state;
    char text[1200]; /**< what there is to say to the state; "": nothing */
    int64_t time;    /**< of the look, by supply_clock_now() */
    bool has_header; /**< the header was there and in order: what follows is known */
    uint64_t generation;
    int32_t rank; /**< in MPI_COMM_WORLD; -1: not known */
    int32_t local_rank;
    uint32_t rank_pid;
    uint32_t task_pid; /**< of the last task; 0: none has come */
    uint32_t task_attempt;
    uint64_t block_bytes;
    uint32_t block_count;
    uint64_t published;
    uint64_t released;
    enum pair_waiting waiting;
    double quiet_seconds; /**< since a notification or a request was written last; -1: not known */
    bool has_progress;    /**< the last published block was there: what follows is known */
    uint32_t epoch;
    bool has_partition; /**< that block is no end */
    uint32_t partition;
    uint64_t elements; /**< published so far */
    uint64_t bytes;    /**< of their blocks */
};

void pair_look(struct pair_look *look, const struct pair_files *files);

/** "supplying" */
const char *pair_state_name(enum pair_state state);

/**
 * Opens a regular file for reading; nothing else is opened, whatever takes its place meanwhile. A descriptor, or -1 and
 * errno (EINVAL: it is no regular file).
 */
int pair_open(const char *path);

#endif

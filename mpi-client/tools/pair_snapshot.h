/**
 * The state of a pair at one moment, seen from outside. An observer takes no lock and changes nothing. It opens no
 * pipe, because an open end is a sign of life. It maps nothing, because a truncated file would kill the tool. It does
 * not wait, and it checks everything that it reads.
 */
#pragma once

#include "files/config_files.h"
#include "layout.h"

/** The files of one pair. */
struct pair_files {
    int local_rank; /**< line of the config files; -1: not known, the pair was found in a folder */
    char *mapped_file;
    char *request_pipe;      /**< NULL: not known */
    char *notification_pipe; /**< NULL: not known */
};

struct pair_list {
    struct pair_files *pairs;
    size_t count;
};

/** Lists the pairs of the config files; local_rank -1: all of them, else only that line. False: out of memory. */
bool pair_list_of_config(struct pair_list *list, const struct config_lines *lines, int local_rank);

/**
 * Lists the pairs in a folder and up to two levels below: regular files that begin with the magic bytes, or are named
 * *.mapped. Their pipes are expected under the names that launch/make-configs gives them. Calls denied (may be NULL)
 * for each folder that cannot be read. False and errno on failure.
 */
bool pair_list_find(struct pair_list *list, const char *folder, void denied(const char *folder));

/** Also frees a list that is {0}, or that could not be made. */
void pair_list_free(struct pair_list *list);

enum pair_state {
    PAIR_ABSENT,    /**< no mapped file: the rank has not started, or has ended */
    PAIR_NO_ACCESS, /**< this user may not read it */
    PAIR_INVALID,   /**< the file is not as the contract says */
    PAIR_STALE,     /**< the rank is dead */
    PAIR_OPENING,   /**< the rank is about to publish the header */
    PAIR_OPEN,      /**< the rank is running, no task has attached yet */
    PAIR_SUPPLYING, /**< a task is attached */
    PAIR_PAUSED,    /**< the task has left before the end of data; the next attempt has not attached yet */
    PAIR_ENDING,    /**< END_OF_DATA is published */
    PAIR_ENDED,     /**< the task knows that the rank has everything */
    PAIR_FAILED,    /**< one side has failed */
};

/** The side that cannot continue until the other side acts. */
enum pair_waiting { NOBODY_WAITS, RANK_WAITS, TASK_WAITS };

struct pair_snapshot {
    enum pair_state state;
    char text[1200]; /**< details of the state; "": none */
    int64_t time;    /**< of the snapshot, by supply__clock_now() */
    bool has_header; /**< the header was valid: the fields below are known */
    uint64_t generation;
    int32_t rank; /**< in MPI_COMM_WORLD; -1: not known */
    int32_t local_rank;
    uint32_t rank_pid;
    uint32_t task_pid; /**< of the last task; 0: none has attached yet */
    uint32_t task_attempt;
    uint64_t block_bytes;
    uint32_t block_count;
    uint32_t exchange; /**< what the ranks must do with the elements; 0: nothing, or not known yet */
    uint32_t exchange_fraction;
    struct exchange_totals exchange_totals; /**< ranks 0: there is no exchange */
    enum pair_waiting waiting;
    double quiet_seconds; /**< since the last notification or request; -1: not known */
    uint64_t published;
    uint64_t released;
    uint64_t epoch_elements;
    uint64_t epoch_steps; /**< 0: not known */
    bool has_counts;      /**< the task has stored these two counts of a whole epoch */
    bool has_progress;    /**< the last published block was valid: the fields below are known */
    uint32_t epoch;
    bool has_partition; /**< that block holds elements: it is not the end of an epoch or of the data */
    uint32_t partition;
    uint32_t referenced_bytes; /**< of the values in place to which the last block refers */
    bool in_resident_file;     /**< the last block lies in a resident file */
    uint64_t elements;         /**< published so far */
    uint64_t bytes;            /**< of their blocks, and of the values in place to which these refer */
    uint64_t last_bytes;       /**< of the last block, these values included */
};

/** The name of a state, as "supplying". */
const char *pair_state_name(enum pair_state state);

struct pair_progress {
    struct pair_snapshot snapshot;
    int64_t changed_after;      /**< time of the last snapshot before the last change seen; 0: not known */
    double elements_per_second; /**< published between the two snapshots; -1: not known */
    double bytes_per_second;    /**< of their blocks, values in place included; -1: not known */
    double waiting_seconds;     /**< upper bound; -1: nobody waits, or not known */
};

/** Takes a snapshot of the pair, and compares it with an earlier one. before may be NULL. */
void pair_progress(struct pair_progress *progress, const struct pair_files *files, const struct pair_progress *before);

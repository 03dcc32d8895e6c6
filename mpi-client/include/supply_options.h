/** How to open a pair: statuses, positions and options. Programs include supply.h, which includes this file. */
#ifndef SUPPLY_OPEN_OPTIONS_H
#define SUPPLY_OPEN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SUPPLY_BUILDING) && defined(__GNUC__)
#define SUPPLY_API __attribute__((visibility("default")))
#else
#define SUPPLY_API
#endif

/* Name, value and meaning of each status. Negative values are errors; supply_error() then says more. */
#define SUPPLY_STATUSES(STATUS)                                                                                        \
    STATUS(SUPPLY_OK, 0)                /* no failure */                                                               \
    STATUS(SUPPLY_END_OF_EPOCH, 1)      /* this rank has received every element of the epoch, or batch of a stream */  \
    STATUS(SUPPLY_END_OF_DATA, 2)       /* every epoch, or the stream, has ended; later calls return this again */     \
    STATUS(SUPPLY_AGAIN, 3)             /* nothing there yet: supply_try_next(), supply_close_within() */              \
    STATUS(SUPPLY_INTERRUPTED, 4)       /* options.interrupted ended a wait; the call may be repeated */               \
    STATUS(SUPPLY_ERROR_ARGUMENT, -1)   /* a call that this header forbids */                                          \
    STATUS(SUPPLY_ERROR_CONFIG, -2)     /* config files, options or paths are missing or wrong */                      \
    STATUS(SUPPLY_ERROR_IN_USE, -3)     /* a living process owns this pair */                                          \
    STATUS(SUPPLY_ERROR_NO_SPACE, -4)   /* the file system has no space for the mapped file or a result */             \
    STATUS(SUPPLY_ERROR_SYSTEM, -5)     /* a system call failed: supply_error_errno() */                               \
    STATUS(SUPPLY_ERROR_TIMEOUT, -6)    /* no task came, or it died or stalled, for longer than the time limit */      \
    STATUS(SUPPLY_ERROR_SPARK, -7)      /* Spark's run failed; the text is Spark's */                                  \
    STATUS(SUPPLY_ERROR_CONTRACT, -8)   /* the task wrote what PROTOCOL.md forbids */                                  \
    STATUS(SUPPLY_ERROR_MEMORY, -9)     /* out of memory */                                                            \
    STATUS(SUPPLY_ERROR_ALL_HELD, -10)  /* every block of the ring is held: release one first */                       \
    STATUS(SUPPLY_ERROR_NO_COLUMN, -11) /* there is no column of that name or index */                                 \
    STATUS(SUPPLY_ERROR_NO_SCHEMA, -12) /* the columns are not known yet: no task has attached */

#define SUPPLY_STATUS(name, value) name = (value),
/** Result of a call. */
typedef enum supply_status_t { SUPPLY_STATUSES(SUPPLY_STATUS) } supply_status_t;
#undef SUPPLY_STATUS

/** The name of a status, for example "SUPPLY_ERROR_TIMEOUT". Never NULL. */
SUPPLY_API const char *supply_status_name(supply_status_t status);

/**
 * A rank's position in its data: epoch, partition, and how many of its elements the rank has consumed; with an exchange
 * also the window. Opaque bytes that may be copied, stored and sent to another process. supply_position_to_text()
 * writes a position as one line.
 */
typedef struct supply_position_t {
    uint8_t bytes[56];
} supply_position_t;

/**
 * Options of supply_open(). Call supply_options_init() first; then 0, NULL or -1 means "not set".
 *
 * The pair is named by the two config files and a local rank (line `local_rank` of each, from 0), or by the three
 * paths; or the rank is elsewhere than Spark, and has the address of its run (docs/FEEDERS.md).
 */
typedef struct supply_options_t {
    size_t struct_bytes; /**< set by supply_options_init() */

    /** mapped-files.conf; not set: SUPPLY_MAPPED_FILES of the environment. */
    const char *mapped_files;
    /** named-pipes.conf; not set: SUPPLY_NAMED_PIPES of the environment. */
    const char *named_pipes;
    /** Rank on this node, from 0; -1: from the launcher's environment (see supply_local_rank()). */
    int local_rank;
    /** Rank in MPI_COMM_WORLD, which the task compares with its own; -1: from the launcher's environment. */
    int rank;
    /**
     * Processes of MPI_COMM_WORLD, as supply_options_from_comm() sets it; 0: not known. supply_open() fails if the
     * launcher has started another number of them: then MPI is not the launcher's, and each process takes itself for
     * rank 0.
     */
    int ranks;

    /** The pair's paths: set all three or none. They win over the config files. */
    const char *mapped_file;
    const char *request_pipe;
    const char *notification_pipe;

    /**
     * Address of a run that Spark serves: "supply://HOST:PORT/RUN", with TLS "supplys://". The rank gets its blocks
     * over a connection, into memory of its own, and everything else is as with a pair of files. NULL: SUPPLY_CONNECT
     * of the environment, if mapped_files is not set, either. The rank's number must be known. A thread of the library
     * receives; it needs OpenSSL for TLS.
     */
    const char *connect;
    /** The key that Spark's side prints or was given; NULL: SUPPLY_KEY of the environment. */
    const char *key;

    /** Time limit of each wait in seconds; 0: SUPPLY_TIMEOUT of the environment, or 120. */
    double timeout;
    /** Bytes of the ring; 0: `ring=` of the config line, or four blocks. Rounded up to whole blocks, at least two. */
    size_t ring_bytes;
    /** Bytes of a block; 0: `block=` of the config line, or a quarter of the ring, or 2 MiB. Rounded up to 4 KiB. */
    size_t block_bytes;

    /**
     * Group (name or number) whose members may feed this rank, for example Spark's executors if they run as another
     * user. NULL: `group=` of the config line, or only this user. The pair's files then belong to the group with mode
     * 0660, their folders with mode 0750. See docs/SECURITY.md.
     */
    const char *group;

    /**
     * Called while a call waits: after a signal handler has run in the waiting thread, and at least ten times a second.
     * If it returns true the call returns SUPPLY_INTERRUPTED. It must not call a function on the handle. NULL: nothing
     * interrupts a wait.
     */
    bool (*interrupted)(void *context);
    void *interrupted_context;

    /**
     * Resume after this position, saved in an earlier run of the same plan: same partitions, ranks, seed, shuffle and
     * uneven. NULL: start at the beginning.
     */
    const supply_position_t *position;

    /**
     * Folder of this rank's results (supply_result.h), which Spark must be given, too (results-folder). The mapped
     * files of all pairs that share one must have different names. NULL: SUPPLY_RESULTS_FOLDER of the environment, or
     * the folder of the mapped file.
     */
    const char *results_folder;

    /**
     * The program will exchange its elements with the other ranks, by supply_exchange_open() (supply_exchange.h). Spark
     * refuses a rank without this option if it was started with --shuffle all.
     */
    bool exchange;

    /**
     * This rank shares its ring with neighbours on its node: it is reader `reader`, from 0, of `readers` ranks, each of
     * which gets every block. Reader 0 opens as any rank; supply_open() of another one waits for it, at most the time
     * limit. `readers` 0: SUPPLY_SHARE of the environment, where a number N makes groups of N neighbours, and
     * "node" one of all ranks that the launcher has started here; 1, or neither: the ring is this rank's alone.
     */
    int reader;
    int readers;
    /** With the three paths above: the mapped file of reader 0. */
    const char *ring_file;
} supply_options_t;

/** Sets every option to "not set". */
SUPPLY_API void supply_options_init(supply_options_t *options);

/**
 * The rank's number on its node, from the launcher's environment: the first that is set of LOCAL_RANK (torchrun, with
 * WORLD_SIZE), OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID (MPICH, Intel MPI), MV2_COMM_WORLD_LOCAL_RANK,
 * PALS_LOCAL_RANKID (Cray), LOCAL_RANK without WORLD_SIZE, FLUX_TASK_LOCAL_ID, SLURM_LOCALID; -1 if none is.
 * supply_mpi.h has a function that asks MPI itself.
 */
SUPPLY_API int supply_local_rank(void);

#ifdef __cplusplus
}
#endif

#endif

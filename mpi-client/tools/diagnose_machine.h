/**
 * Checks of supply-doctor about this machine: space and memory for the mapped files, threads, the folder for temporary
 * files, memory nodes (NUMA), and copies between the memory of processes.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "files/config_files.h"
#include "files/memory_limit.h"
#include "thread_limit.h"

enum diagnosis_status { DIAGNOSIS_OK, DIAGNOSIS_WARNING, DIAGNOSIS_FAILED, DIAGNOSIS_SKIPPED };

/** Where the report goes, and how many checks warned or failed. */
struct diagnosis {
    FILE *stream;
    bool json;
    unsigned warnings;
    unsigned failed;
    bool incomplete; /**< a check could not be reported: out of memory */
};

/** Reports one check. fix says what to do; NULL if nothing is to do, or if the text already says it. */
__attribute__((format(printf, 5, 6))) void diagnosis_report(struct diagnosis *diagnosis, enum diagnosis_status status,
                                                            const char *check, const char *fix, const char *format,
                                                            ...);

/**
 * Reports the checks that another program has written into a file: on each line STATUS, CHECK, TEXT and FIX, separated
 * by tabs. A line of another form is reported as a failure. False and errno if the file cannot be read.
 */
bool diagnosis_report_file(struct diagnosis *diagnosis, const char *file);

/** Finds the deepest existing folder above the file. path is absolute. */
void existing_folder(const char *path, char folder[PATH_MAX]);

/** Cuts the last part off the path. False if the path is the root. */
bool parent_folder(char *path);

/** The bytes that the mapped file of a pair needs in addition to those that it already has. */
struct mapped_file_need {
    const struct config_line *line;
    uint64_t bytes;
};

/** Checks the space in the file systems, and the memory of this machine and of this container. */
void diagnose_memory(struct diagnosis *diagnosis, const struct mapped_file_need *needs, size_t count);

/** Says whether that many bytes fit into the container's limit, and into what is left of it. */
void diagnose_container(struct diagnosis *diagnosis, const struct memory_limit *limit, uint64_t needed);

/** Says whether the threads of an executor and of these ranks fit into the limit. */
void diagnose_threads(struct diagnosis *diagnosis, const struct thread_limit *limit, size_t ranks);

/** Checks the folder for temporary files: TMPDIR, or /tmp. */
void diagnose_temporary(struct diagnosis *diagnosis);

/** Where the kernel describes the memory nodes (sysfs, ABI/stable/sysfs-devices-node). */
#define NODES_FOLDER "/sys/devices/system/node"

/** Says where the pages of a ring lie on this machine, and what to do about it. folder: NODES_FOLDER. */
void diagnose_nodes(struct diagnosis *diagnosis, const char *folder);

/** Tries process_vm_readv() between two processes, as Open MPI and MPICH do for large messages. */
void diagnose_copies(struct diagnosis *diagnosis);

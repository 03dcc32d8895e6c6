/** Checks of supply-doctor: is there enough space and memory for the mapped files? */
#ifndef DIAGNOSE_MEMORY_H
#define DIAGNOSE_MEMORY_H

#include "config_files.h"
#include "diagnosis.h"

/** The bytes that the mapped file of a pair needs in addition to those that it already has. */
struct mapped_file_need {
    const struct config_line *line;
    uint64_t bytes;
};

/** Checks the space in the file systems, the memory of this machine and of this container, and huge pages. */
void diagnose_memory(struct diagnosis *diagnosis, const struct mapped_file_need *needs, size_t count);

#endif

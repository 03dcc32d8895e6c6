/** Checks of supply-doctor: is there room for the mapped files? */
#ifndef DOCTOR_MEMORY_H
#define DOCTOR_MEMORY_H

#include "config_files.h"
#include "finding.h"

/** What the mapped file of a pair needs beyond what it has already. */
struct mapped_file_need {
    const struct config_line *line;
    uint64_t bytes;
};

/** The space in their file systems; the memory of this machine and of this container; huge pages. */
void doctor_memory(struct findings *findings, const struct mapped_file_need *needs, size_t count);

#endif

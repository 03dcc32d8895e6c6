/** The rank's mapped file: claimed, reserved, mapped. */
#pragma once

#include "files/claimed_file.h"
#include "layout.h"
#include "files/options.h"

struct mapped_file {
    struct claimed_file file;
    union {
        uint8_t *address; /**< of the whole file, one mapping; only the header is writable */
        struct mapped_file_header *header;
    };
    size_t bytes;
    int ring_fd;       /**< of reader 0's mapped file, whose ring lies after this header; -1: the ring is this file's */
    void *wide_schema; /**< of a filler, in memory; else NULL: it lies after these bytes of the file */
};

#define MAPPED_FILE_NONE ((struct mapped_file){.file = CLAIMED_FILE_NONE, .ring_fd = -1})

/**
 * O1 and O2. Every page is reserved, so that touching one cannot fail later. A reader that is not the first joins the
 * ring, which may take until the timeout, and gets its generation and sizes. SUPPLY_OK, or what supply__claim() or
 * supply__ring_join() returns. On failure nothing is left.
 */
supply_status_t supply__mapped_file_create(struct mapped_file *mapped, struct settings *settings,
                                           struct failure *failure);

/** The same without a name, for a rank elsewhere: memory that ends with its descriptors. SUPPLY_OK, or _MEMORY,
 * _SYSTEM. */
supply_status_t supply__mapped_file_create_unnamed(struct mapped_file *mapped, const struct settings *settings,
                                                   struct failure *failure);

/**
 * A reader that is not the first joins the ring of the first (joined_ring.c). Waits, at most the time limit, until
 * reader 0 has opened its pair, and no task has attached to it. *ring_fd is then its mapped file, for reading, and the
 * settings have its generation and the sizes of its ring. SUPPLY_OK, or _TIMEOUT, SUPPLY_INTERRUPTED, _CONFIG (no safe
 * file), _CONTRACT (its header), _SYSTEM, _MEMORY.
 */
supply_status_t supply__ring_join(int *ring_fd, struct settings *settings, struct failure *failure);

/** What the headers of a pair and of a result have in common, of a rank with these settings. */
void supply__header_fill(struct mapped_file_header *header, const char *magic, const struct settings *settings,
                         uint64_t file_bytes, uint64_t ring_offset);

/** Fills in the header except the version: O4 stores it when the pipes are ready. */
void supply__mapped_file_fill(const struct mapped_file *mapped, const struct settings *settings);

/**
 * SUPPLY_OK; SUPPLY_ERROR_CONTRACT: a program has cut the file, and reads of the memory after its end raise SIGBUS. The
 * header is then memory of this process, so that the pair can be closed.
 */
supply_status_t supply__mapped_file_check_whole(const struct mapped_file *mapped, struct failure *failure);

/** Unmaps and removes the file. False and errno: the file is still there. */
bool supply__mapped_file_remove(struct mapped_file *mapped);

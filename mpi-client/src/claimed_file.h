/** O1: the three files of a pair are claimed alike: created, locked, and removed when they are stale. */
#ifndef SUPPLY_CLAIMED_FILE_H
#define SUPPLY_CLAIMED_FILE_H

#include <sys/types.h>

#include "config_files.h"
#include "failure.h"

enum file_kind { FILE_MAPPED, FILE_REQUEST_PIPE, FILE_NOTIFICATION_PIPE };

/** A file that this process created and keeps locked. */
struct claimed_file {
    enum file_kind kind;
    const struct named_path *name; /**< borrowed */
    int fd;                        /**< read and write, non-blocking; -1: not claimed */
    dev_t device;
    ino_t inode;
};

#define CLAIMED_FILE_NONE ((struct claimed_file){.fd = -1})

/** "mapped file", "request pipe" or "notification pipe". */
const char *supply_file_kind_name(enum file_kind kind);

/**
 * Creates the file (0600) and missing folders (0700), and locks it. A stale one is replaced.
 * SUPPLY_OK, or _IN_USE, _CONFIG (what stands there is not ours to replace), _NO_SPACE, _SYSTEM, _MEMORY.
 */
supply_status_t supply_claim(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                             struct failure *failure);

/**
 * Takes over a stale file without replacing it. SUPPLY_OK: file->fd is -1 where there was none.
 * Else _IN_USE, _CONFIG, _SYSTEM.
 */
supply_status_t supply_claim_stale(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                                   struct failure *failure);

/** True if the path still leads to the claimed file. */
bool supply_claim_holds(const struct claimed_file *file);

/** Removes the file, unless its path has become another's, and gives the lock back. */
void supply_claim_remove(struct claimed_file *file);

/** Gives the lock back and leaves the file. */
void supply_claim_close(struct claimed_file *file);

#endif

/**
 * O1 and W1: claims a file of a rank: creates and locks it; a stale one is removed first. And the files that a dead
 * rank left of a pair.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "files/config_files.h"
#include "base/failure.h"
#include "files/folder.h"

/** The three files of a pair, and a result. */
enum file_kind { FILE_MAPPED, FILE_REQUEST_PIPE, FILE_NOTIFICATION_PIPE, FILE_RESULT };

/** A file that this process created and keeps locked, or a stale one that it protects from other processes. */
struct claimed_file {
    enum file_kind kind;
    const struct named_path *name; /**< borrowed */
    gid_t group;                   /**< may use the file, too; or NO_GROUP */
    int folder;                    /**< the name is looked up in it, never by its path again; -1: not open */
    int fd;                        /**< read and write, non-blocking; -1: not claimed */
    dev_t device;
    ino_t inode;
};

#define CLAIMED_FILE_NONE ((struct claimed_file){.group = NO_GROUP, .folder = -1, .fd = -1})

/** "mapped file", "request pipe", "notification pipe" or "result". */
const char *supply__file_kind_name(enum file_kind kind);

/**
 * Creates the file (0600; with a group 0660, and a result 0640) and missing folders (0700; 0750), and locks it. A stale
 * one is replaced. SUPPLY_OK, or _IN_USE, _CONFIG (the file there must not be replaced), _NO_SPACE, _SYSTEM, _MEMORY.
 */
supply_status_t supply__claim(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                              gid_t group, struct failure *failure);

/**
 * Checks that the file is stale, and keeps ranks from claiming its name until it is closed or removed.
 * SUPPLY_OK: file->fd is -1 if there is none. Else _IN_USE, _CONFIG, _SYSTEM.
 */
supply_status_t supply__claim_stale(struct claimed_file *file, enum file_kind kind, const struct named_path *name,
                                    struct failure *failure);

/** Memory without a name, in place of a file: reserved. Its only descriptor, or -1 and errno. */
int supply__claim_unnamed(size_t bytes);

/** Opens the claimed file once more, without blocking. A descriptor, or -1 and errno; ESTALE: it was replaced. */
int supply__claim_reopen(const struct claimed_file *file, int flags);

/**
 * Gives the file another name in its folder. False and errno: it has its old name; ESTALE: that leads to another file.
 */
bool supply__claim_rename(struct claimed_file *file, const struct named_path *name);

/** Removes the file, unless its name leads to another one; releases the locks. False and errno: it is still there. */
bool supply__claim_remove(struct claimed_file *file);

/** Releases the locks. The file stays. */
void supply__claim_close(struct claimed_file *file);

/** By enum file_kind: which of the three files of a pair a dead rank left. */
struct stale_files {
    bool left[3];
};

/**
 * Finds these files; changes nothing. SUPPLY_OK, or _IN_USE (the pair lives), _CONFIG (a file there must not be
 * removed), _SYSTEM, _MEMORY: then left is false for all three.
 */
supply_status_t supply__stale_find(const struct config_line *files, struct stale_files *stale, struct failure *failure);

/** Finds and removes these files. left: those that were removed. */
supply_status_t supply__stale_remove(const struct config_line *files, struct stale_files *stale,
                                     struct failure *failure);

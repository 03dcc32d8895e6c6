/** Space for the files of a rank: it is reserved before it is used, so that no later access can fail. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "files/claimed_file.h"

#define SPACE_WITHOUT_LIMIT UINT64_MAX

/** Bytes that this user can still write. A tmpfs without a limit has no blocks, and so no free ones: _WITHOUT_LIMIT. */
uint64_t supply__space_free(const struct statvfs *space);

/**
 * Whether the control groups of this process have memory for `bytes` more. If not, a reservation would end a process
 * of the group by a signal. root: "" except in tests. SUPPLY_OK, or _NO_SPACE with the group, its limit and what is
 * left.
 */
supply_status_t supply__memory_check(uint64_t bytes, const char *root, struct failure *failure);

/**
 * Memory without a name, in place of a file: of that length, and not reserved. flags: of memfd_create(). A descriptor,
 * or -1 and errno. EFBIG: ulimit -f would end the process.
 */
int supply__space_unnamed(size_t bytes, unsigned flags);

/** Reserves pages of a file, also if signals interrupt it, and checks nothing. 0, or an error number. */
int supply__space_allocate(int fd, uint64_t offset, uint64_t bytes);

/**
 * Reserves the first `bytes` of a new file, after a check, also of memory if it lies there. The magic is written first:
 * if this process dies, the file can be recognised as a rank's. SUPPLY_OK, or _NO_SPACE, _SYSTEM.
 */
supply_status_t supply__space_begin(const struct claimed_file *file, const char magic[8], uint64_t bytes,
                                    struct failure *failure);

/**
 * Writes these pieces, of `bytes` together, one after the other from `offset` on, and changes them. SUPPLY_OK, or
 * _NO_SPACE, _SYSTEM.
 */
supply_status_t supply__space_write_pieces(const struct claimed_file *file, uint64_t offset, size_t bytes,
                                           struct iovec *pieces, int count, struct failure *failure);

/** Writes all bytes at `offset`. SUPPLY_OK, or _NO_SPACE, _SYSTEM. */
supply_status_t supply__space_write(const struct claimed_file *file, uint64_t offset, const void *bytes, size_t count,
                                    struct failure *failure);

/**
 * mapped-files.conf and named-pipes.conf: which files belong to which local rank (docs/CONFIG-FILES.md). Each path
 * keeps its source, for messages.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

/** A path, and its source ("FILE:LINE", or "options") for messages. */
struct named_path {
    char *path;
    char *origin;
};

/**
 * "WHAT PATH (ORIGIN) TEXT", or with a folder "WHAT PATH (ORIGIN): its folder FOLDER TEXT". %m is the current errno.
 * Returns status.
 */
__attribute__((format(printf, 6, 0))) supply_status_t supply__fail_at(struct failure *failure, supply_status_t status,
                                                                      const char *what, const struct named_path *file,
                                                                      const char *folder, const char *format,
                                                                      va_list arguments);

/** ring=auto: the caches decide. */
#define RING_AUTO UINT64_MAX

/** One line of both files. */
struct config_line {
    struct named_path mapped_file;
    struct named_path request_pipe;
    struct named_path notification_pipe;
    uint64_t ring_bytes;  /**< 0: not set; or RING_AUTO */
    uint64_t block_bytes; /**< 0: not set */
    char *group;          /**< name or number; NULL: not set */
};

struct config_lines {
    struct config_line *lines;
    size_t count;
};

/**
 * Reads both files and checks every line, so that all ranks of a node fail alike. SUPPLY_OK, or _CONFIG, _MEMORY. Free
 * *lines with supply__config_free() in any case.
 */
supply_status_t supply__config_read(const char *mapped_files, const char *named_pipes, struct config_lines *lines,
                                    struct failure *failure);
void supply__config_free(struct config_lines *lines);

/** Frees the strings of one line. */
void supply__config_line_free(struct config_line *line);

/** A size as "16MiB", "64KiB", "1GiB", or bytes; 0 if the text is no size, or is 0. */
uint64_t supply__config_size(const char *text);

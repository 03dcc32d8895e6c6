/** A path with its source, and messages about it. */
#ifndef SUPPLY_NAMED_PATH_H
#define SUPPLY_NAMED_PATH_H

#include <stdarg.h>

#include "failure.h"

/** A path, and its source ("FILE:LINE", or "options") for messages. */
struct named_path {
    char *path;
    char *origin;
};

/**
 * "WHAT PATH (ORIGIN) TEXT", or with a folder "WHAT PATH (ORIGIN): its folder FOLDER TEXT". %m is the current errno.
 * Returns status.
 */
__attribute__((format(printf, 6, 0))) supply_status_t supply_fail_at(struct failure *failure, supply_status_t status,
                                                                     const char *what, const struct named_path *file,
                                                                     const char *folder, const char *format,
                                                                     va_list arguments);

#endif

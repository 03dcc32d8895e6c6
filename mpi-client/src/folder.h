/** The folder of a pair's file. */
#ifndef SUPPLY_FOLDER_H
#define SUPPLY_FOLDER_H

#include "config_files.h"
#include "failure.h"

/**
 * Creates the missing folders above a file (0700) and makes sure that files can be created there.
 * what: the file's kind, for messages. SUPPLY_OK, or _CONFIG, _MEMORY.
 */
supply_status_t supply_folder_prepare(const char *what, const struct named_path *file, struct failure *failure);

#endif

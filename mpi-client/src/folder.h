/** The folder of a pair's file, opened once: the file is looked up in it, even if its path leads elsewhere later. */
#ifndef SUPPLY_FOLDER_H
#define SUPPLY_FOLDER_H

#include "config_files.h"
#include "failure.h"
#include "groups.h"

/**
 * Opens the folder of a file, which only its own user may be able to write. Missing folders are created (0700). With
 * a group, those that are created and the file's own folder become the group's, with mode 0750. The caller
 * closes *folder. what: the file's kind, for messages. SUPPLY_OK, or _CONFIG, _MEMORY.
 */
supply_status_t supply_folder_prepare(int *folder, const char *what, const struct named_path *file, gid_t group,
                                      struct failure *failure);

/** As supply_folder_prepare(), but creates and changes nothing: *folder is -1 if there is none. */
supply_status_t supply_folder_find(int *folder, const char *what, const struct named_path *file,
                                   struct failure *failure);

/** The name of the file within its folder. */
const char *supply_folder_name(const struct named_path *file);

#endif

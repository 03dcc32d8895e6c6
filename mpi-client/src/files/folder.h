/**
 * The folder of a pair's file, opened once: the file is looked up in it, even if its path leads elsewhere later. And
 * the names and numbers of the users and groups that may use it.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "files/config_files.h"
#include "base/failure.h"

/** No group: the files are the owner's alone. */
#define NO_GROUP ((gid_t) - 1)

/** Enough bytes for the texts of the next two functions. */
#define USER_TEXT_BYTES 128

/** "alice (uid 1000)", or "uid 1000" if that user has no name. Returns text. */
const char *supply__user_text(uid_t user, char text[USER_TEXT_BYTES]);

/** "feeders", or "1000" if that group has no name: as chgrp takes it. Returns text. Keeps errno. */
const char *supply__group_text(gid_t group, char text[USER_TEXT_BYTES]);

/** The group of that name or number. origin: source of the name, for messages. SUPPLY_OK, or _CONFIG, _MEMORY. */
supply_status_t supply__group_find(const char *name, const char *origin, gid_t *group, struct failure *failure);

/**
 * Opens the folder of a file, which only its own user may be able to write. Missing folders are created (0700). With
 * a group, those that are created and the file's own folder become the group's, with mode 0750. The caller
 * closes *folder. what: the file's kind, for messages. SUPPLY_OK, or _CONFIG, _MEMORY.
 */
supply_status_t supply__folder_prepare(int *folder, const char *what, const struct named_path *file, gid_t group,
                                       struct failure *failure);

/** As supply__folder_prepare(), but creates and changes nothing: *folder is -1 if there is none. */
supply_status_t supply__folder_find(int *folder, const char *what, const struct named_path *file,
                                    struct failure *failure);

/** Whether the name still leads to that file, so that it may be removed. A symbolic link is not followed. */
bool supply__folder_has(int folder, const char *name, dev_t device, ino_t inode);

/**
 * Opens a regular file for reading, and never anything else, because opening a pipe or a device may do something. A
 * descriptor; or -1 and errno, EINVAL: it is not a regular file.
 */
int supply__open_regular(int folder, const char *name);

/** Whether all of these rights of others, or those of the group if the file is the group's, are given. */
bool supply__is_open_to(const struct stat *file, gid_t group, mode_t others);

/** The name of the file within its folder. */
const char *supply__folder_name(const struct named_path *file);

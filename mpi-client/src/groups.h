/** Names and numbers of users and groups. */
#ifndef SUPPLY_GROUPS_H
#define SUPPLY_GROUPS_H

#include <stddef.h>
#include <sys/types.h>

#include "failure.h"

/** No group: the files are the owner's alone. */
#define NO_GROUP ((gid_t) - 1)

/** Enough bytes for the texts of the next two functions. */
#define USER_TEXT_BYTES 128

/** "alice (uid 1000)", or "uid 1000" if that user has no name. Returns text. */
const char *supply_user_text(uid_t user, char text[USER_TEXT_BYTES]);

/** "feeders", or "1000" if that group has no name: as chgrp takes it. Returns text. Keeps errno. */
const char *supply_group_text(gid_t group, char text[USER_TEXT_BYTES]);

/** The group of that name or number. origin: source of the name, for messages. SUPPLY_OK, or _CONFIG, _MEMORY. */
supply_status_t supply_group_find(const char *name, const char *origin, gid_t *group, struct failure *failure);

#endif

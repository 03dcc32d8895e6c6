/** PAIR.HASH.resident: the names of a pair's resident files (proto/PROTOCOL.md, "Resident files"). */
#ifndef RESIDENT_NAME_H
#define RESIDENT_NAME_H

#include "named_path.h"

#define RESIDENT_SUFFIX ".resident"
#define UNSEALED_RESIDENT_SUFFIX RESIDENT_SUFFIX ".unsealed"

/** Path of the pair's file with that suffix in the folder; the caller frees it. NULL: out of memory. */
char *resident_file_path(const char *folder, const struct named_path *mapped_file, const char *suffix);

#endif

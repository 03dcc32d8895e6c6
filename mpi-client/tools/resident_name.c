#include "resident_name.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "folder.h"

/* FNV-1a of 64 bits: pairs of different folders may have mapped files of the same name. */
static uint64_t hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
    return hash;
}

char *resident_file_path(const char *folder, const struct named_path *mapped_file, const char *suffix) {
    char *path;
    const int length = asprintf(&path, "%s/%s.%016" PRIx64 "%s", folder, supply_folder_name(mapped_file),
                                hash(mapped_file->path), suffix);
    return length < 0 ? NULL : path;
}

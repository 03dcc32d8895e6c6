#include "node_memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "memory_limit.h"

static size_t available_by_meminfo(const char *root) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return SIZE_MAX;
    char line[128];
    size_t kibibytes = SIZE_MAX >> 10;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "MemAvailable: %zu kB", &kibibytes) != 1) continue;
    fclose(file);
    return kibibytes << 10;
}

static size_t available_by_group(const char *root) {
    struct memory_limit limit;
    memory_limit_read(&limit, root);
    if (!limit.limited) return SIZE_MAX;
    const uint64_t used = limit.used_bytes > limit.cached_bytes ? limit.used_bytes - limit.cached_bytes : 0;
    return limit.limit_bytes > used ? limit.limit_bytes - used : 0;
}

size_t node_memory_available(const char *root) {
    const size_t of_node = available_by_meminfo(root), of_group = available_by_group(root);
    return of_node < of_group ? of_node : of_group;
}

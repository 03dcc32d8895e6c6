#include "node_memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory_limit.h"

/*
 * In KiB. MemAvailable alone is too much: it counts the pages that MADV_FREE was told of, even when they are in use
 * again.
 */
struct meminfo {
    size_t available;
    size_t free_or_cached;
};

static const char *const free_or_cached[] = {"MemFree", "Buffers", "Cached", "SReclaimable"};

static void add_line(struct meminfo *info, const char *line) {
    char name[32];
    size_t kibibytes;
    if (sscanf(line, "%31[^:]: %zu kB", name, &kibibytes) != 2) return;
    if (strcmp(name, "MemAvailable") == 0) info->available = kibibytes;
    for (size_t i = 0; i < sizeof free_or_cached / sizeof *free_or_cached; i++)
        if (strcmp(name, free_or_cached[i]) == 0) info->free_or_cached += kibibytes;
    /* Files in memory are among the cached ones. */
    if (strcmp(name, "Shmem") == 0) info->free_or_cached -= kibibytes;
}

static size_t available_by_meminfo(const char *root) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return SIZE_MAX;
    char line[128];
    struct meminfo info = {.available = SIZE_MAX >> 10};
    while (fgets(line, sizeof line, file) != NULL) add_line(&info, line);
    fclose(file);
    return (info.available < info.free_or_cached ? info.available : info.free_or_cached) << 10;
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

/** Takes the limit with the least left of this process's control groups, versions 1 and 2. */
#include "files/memory_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version 1 says "no limit" by a number that no machine reaches. */
#define NO_LIMIT (UINT64_C(1) << 60)

/** The names of the files of one version of control groups. */
struct version {
    struct control_groups groups;
    const char *limit;
    const char *used;
    const char *cached; /* in memory.stat, with */
    const char *shared; /* files in memory */
};
static const struct version versions[] = {
    {{"cgroup2", ""}, "memory.max", "memory.current", "file", "shmem"},
    {{"cgroup", "memory"}, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"},
};

uint64_t supply__memory_limit_left(const struct memory_limit *limit) {
    const uint64_t kept = limit->used_bytes > limit->cached_bytes ? limit->used_bytes - limit->cached_bytes : 0;
    return !limit->limited ? UINT64_MAX : limit->limit_bytes > kept ? limit->limit_bytes - kept : 0;
}

/* The number after a name in memory.stat; 0: it is not there. */
static uint64_t read_statistic(const char *folder, const char *name) {
    char path[PATH_MAX + 64], line[128];
    uint64_t number = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/memory.stat", folder) >= sizeof path) return 0;
    FILE *stream = fopen(path, "re");
    const size_t length = strlen(name);
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ' ') number = strtoull(line + length, NULL, 10);
    if (stream != NULL) fclose(stream);
    return number;
}

/* What memory_limit_apply_group() gets. */
struct search {
    struct memory_limit *limit;
    const struct version *version;
};

static void memory_limit_apply_group(void *context, const char *folder) {
    const struct search *search = context;
    const struct version *version = search->version;
    struct memory_limit *limit = search->limit;
    struct memory_limit found = {.limited = true};
    if (!supply__control_group_number(folder, version->limit, &found.limit_bytes) || found.limit_bytes >= NO_LIMIT)
        return;
    supply__control_group_number(folder, version->used, &found.used_bytes);
    const uint64_t cached = read_statistic(folder, version->cached), shared = read_statistic(folder, version->shared);
    found.cached_bytes = cached > shared ? cached - shared : 0;
    snprintf(found.place, sizeof found.place, "%s", folder);
    const uint64_t least =
        limit->limited && limit->least_bytes < found.limit_bytes ? limit->least_bytes : found.limit_bytes;
    if (supply__memory_limit_left(&found) < supply__memory_limit_left(limit)) *limit = found;
    limit->least_bytes = least;
}

void supply__memory_limit_read(struct memory_limit *limit, const char *root) {
    *limit = (struct memory_limit){0};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct search search = {limit, &versions[i]};
        supply__control_groups_visit(&versions[i].groups, root, memory_limit_apply_group, &search);
    }
}

/*
 * In KiB. MemAvailable alone is too much: it counts the pages that MADV_FREE was told of, even when they are in use
 * again.
 */
struct meminfo {
    uint64_t available;
    uint64_t free_or_cached;
};

static const char *const free_or_cached[] = {"MemFree", "Buffers", "Cached", "SReclaimable"};

static void add_line(struct meminfo *info, const char *line) {
    char name[32];
    uint64_t kibibytes;
    if (sscanf(line, "%31[^:]: %" SCNu64 " kB", name, &kibibytes) != 2) return;
    if (strcmp(name, "MemAvailable") == 0) info->available = kibibytes;
    for (size_t i = 0; i < sizeof free_or_cached / sizeof *free_or_cached; i++)
        if (strcmp(name, free_or_cached[i]) == 0) info->free_or_cached += kibibytes;
    /* Files in memory are among the cached ones. */
    if (strcmp(name, "Shmem") == 0) info->free_or_cached -= kibibytes;
}

uint64_t supply__memory_available(const char *root) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return UINT64_MAX;
    char line[128];
    struct meminfo info = {.available = UINT64_MAX >> 10};
    while (fgets(line, sizeof line, file) != NULL) add_line(&info, line);
    fclose(file);
    return (info.available < info.free_or_cached ? info.available : info.free_or_cached) << 10;
}

/* Finds the groups in /proc/self/cgroup and their folders by /proc/self/mountinfo. */

bool supply__control_group_number(const char *folder, const char *file, uint64_t *number) {
    char path[PATH_MAX + 64], text[64];
    *number = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, file) >= sizeof path) return false;
    FILE *stream = fopen(path, "re");
    if (stream == NULL) return false;
    char *end = text;
    if (fgets(text, sizeof text, stream) != NULL) *number = strtoull(text, &end, 10);
    fclose(stream);
    return end != text;
}

static bool has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

/* Reads the group of this process, as "/a/b", from "ID:CONTROLLERS:/a/b". */
static bool find_group(const char *root, const struct control_groups *groups, char group[PATH_MAX]) {
    char path[PATH_MAX], line[PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *stream = fopen(path, "re");
    bool found = false;
    while (stream != NULL && !found && fgets(line, sizeof line, stream) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line;
        const char *id = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
        if (rest == NULL || (strcmp(id, "0") == 0) != (*groups->controller == '\0')) continue;
        found = has_word(controllers, groups->controller);
        snprintf(group, PATH_MAX, "%s", rest);
    }
    if (stream != NULL) fclose(stream);
    return found;
}

/* The kernel writes a blank, a tab, a line feed and a backslash of a path as three octal digits: "\040". */
static void decode(char *path) {
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        const bool is_escape = *from == '\\' && strspn(from + 1, "01234567") >= 3;
        *to = (char)(is_escape ? (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0') : *from);
        from += is_escape ? 4 : 1;
    }
    *to = '\0';
}

/* Finds the mount of the groups: its point, and the group that is its top: "… TOP POINT … - TYPE SOURCE OPTIONS". */
static bool find_mount(const char *root, const struct control_groups *groups, char top[PATH_MAX],
                       char point[PATH_MAX]) {
    char path[PATH_MAX], line[3 * PATH_MAX], type[64], options[1024];
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *stream = fopen(path, "re");
    bool found = false;
    while (stream != NULL && !found && fgets(line, sizeof line, stream) != NULL) {
        const char *rest = strstr(line, " - ");
        if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) continue;
        if (sscanf(rest, " - %63s %*s %1023s", type, options) != 2) continue;
        found =
            strcmp(type, groups->type) == 0 && (*groups->controller == '\0' || has_word(options, groups->controller));
    }
    if (stream != NULL) fclose(stream);
    if (!found) return false;
    decode(top);
    decode(point);
    return true;
}

void supply__control_groups_visit(const struct control_groups *groups, const char *root,
                                  void (*visit)(void *context, const char *folder), void *context) {
    char group[PATH_MAX], top[PATH_MAX], point[PATH_MAX], folder[PATH_MAX];
    if (!find_group(root, groups, group) || !find_mount(root, groups, top, point)) return;
    /* A container without a namespace of its own sees its whole path, but mounts only its own group. */
    const size_t hidden = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool below = strncmp(group, top, hidden) == 0;
    const size_t mounted = strlen(root) + strlen(point);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s%s", root, point, below ? group + hidden : "") >= sizeof folder)
        return;
    for (;;) {
        visit(context, folder);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < mounted) return;
        *slash = '\0';
    }
}

/** Reads the control groups of this process, versions 1 and 2, up to the root, and takes the smallest limit. */
#include "memory_limit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version 1 says "no limit" by a number that no machine reaches. */
#define NO_LIMIT (UINT64_C(1) << 60)

/** The names of the mounts and files of one version of control groups. */
struct version {
    const char *type;
    const char *controller; /* in /proc/self/cgroup and in the mount's options */
    const char *limit;
    const char *used;
    const char *cached; /* in memory.stat, with */
    const char *shared; /* files in memory */
};
static const struct version versions[] = {
    {"cgroup2", "", "memory.max", "memory.current", "file", "shmem"},
    {"cgroup", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"},
};

static bool read_number(const char *folder, const char *file, uint64_t *number) {
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

static bool has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

/* Reads the group of this process, as "/a/b", from "ID:CONTROLLERS:/a/b". */
static bool find_group(const char *root, const struct version *version, char group[PATH_MAX]) {
    char path[PATH_MAX], line[PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *stream = fopen(path, "re");
    bool found = false;
    while (stream != NULL && !found && fgets(line, sizeof line, stream) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line;
        const char *id = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
        if (rest == NULL || (strcmp(id, "0") == 0) != (*version->controller == '\0')) continue;
        found = has_word(controllers, version->controller);
        snprintf(group, PATH_MAX, "%s", rest);
    }
    if (stream != NULL) fclose(stream);
    return found;
}

/* Finds the mount of the groups: its point, and the group that is its top: "… TOP POINT … - TYPE SOURCE OPTIONS". */
static bool find_mount(const char *root, const struct version *version, char top[PATH_MAX], char point[PATH_MAX]) {
    char path[PATH_MAX], line[3 * PATH_MAX], type[64], options[1024];
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *stream = fopen(path, "re");
    bool found = false;
    while (stream != NULL && !found && fgets(line, sizeof line, stream) != NULL) {
        const char *rest = strstr(line, " - ");
        if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) continue;
        if (sscanf(rest, " - %63s %*s %1023s", type, options) != 2) continue;
        found = strcmp(type, version->type) == 0 &&
                (*version->controller == '\0' || has_word(options, version->controller));
    }
    if (stream != NULL) fclose(stream);
    return found;
}

static void apply_group(struct memory_limit *limit, const struct version *version, const char *folder) {
    struct memory_limit found = {.limited = true};
    if (!read_number(folder, version->limit, &found.limit_bytes) || found.limit_bytes >= NO_LIMIT) return;
    if (limit->limited && found.limit_bytes >= limit->limit_bytes) return;
    read_number(folder, version->used, &found.used_bytes);
    const uint64_t cached = read_statistic(folder, version->cached), shared = read_statistic(folder, version->shared);
    found.cached_bytes = cached > shared ? cached - shared : 0;
    snprintf(found.place, sizeof found.place, "%s", folder);
    *limit = found;
}

/* Applies the limit of the group and of its ancestors that this container can see. */
static void apply_version(struct memory_limit *limit, const struct version *version, const char *root) {
    char group[PATH_MAX], top[PATH_MAX], point[PATH_MAX], folder[PATH_MAX];
    if (!find_group(root, version, group) || !find_mount(root, version, top, point)) return;
    /* A container without a namespace of its own sees its whole path, but mounts only its own group. */
    const size_t hidden = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool below = strncmp(group, top, hidden) == 0;
    const size_t mounted = strlen(root) + strlen(point);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s%s", root, point, below ? group + hidden : "") >= sizeof folder)
        return;
    for (;;) {
        apply_group(limit, version, folder);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < mounted) return;
        *slash = '\0';
    }
}

void memory_limit_read(struct memory_limit *limit, const char *root) {
    *limit = (struct memory_limit){0};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) apply_version(limit, &versions[i], root);
}

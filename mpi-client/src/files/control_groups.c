/** Finds the groups in /proc/self/cgroup and their folders by /proc/self/mountinfo. */
#include "files/control_groups.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

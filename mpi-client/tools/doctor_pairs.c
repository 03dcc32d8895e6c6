#include "doctor_pairs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "existing_folder.h"
#include "layout.h"
#include "options.h"
#include "stale.h"

static bool is_member(gid_t group) {
    if (geteuid() == 0 || getegid() == group) return true;
    const int count = getgroups(0, NULL);
    gid_t *groups = count > 0 ? calloc((size_t)count, sizeof *groups) : NULL;
    const int got = groups ? getgroups(count, groups) : 0;
    bool found = false;
    for (int i = 0; i < got; i++) found |= groups[i] == group;
    free(groups);
    return found;
}

static bool is_open_to(const char *path, gid_t group, mode_t others) {
    struct stat entry;
    return stat(path, &entry) == 0 && (entry.st_mode & (entry.st_gid == group ? others << 3 : others)) != 0;
}

/* The first folder above the file's own that the group can not pass. "" if there is none. */
static void find_closed_folder(const char *path, gid_t group, char folder[PATH_MAX]) {
    char own[PATH_MAX];
    const size_t length = (size_t)(strrchr(path, '/') - path);
    snprintf(own, sizeof own, "%.*s", (int)length, path);
    existing_folder(path, folder);
    /* Its own folder is opened to the group by the rank. */
    do {
        if (strcmp(folder, own) != 0 && !is_open_to(folder, group, S_IXOTH)) return;
    } while (folder_above(folder));
    folder[0] = '\0';
}

/* Whether executors of another user, members of the group, come to where they have to. */
static void check_group(struct findings *findings, const struct which_pairs *which, const struct config_line *line,
                        gid_t group) {
    char name[USER_TEXT_BYTES], user[USER_TEXT_BYTES], folder[PATH_MAX];
    supply_group_text(group, name);
    if (!is_member(group)) {
        finding(findings, FINDING_FAILED, "group", "make it a member (usermod -aG), log in anew; or change group=",
                "%s: this user, %s, is not in the group %s", line->mapped_file.origin,
                supply_user_text(geteuid(), user), name);
        return;
    }
    const char *const files[] = {which->mapped_files, which->named_pipes};
    bool open = true;
    for (int i = 0; i < 2; i++) {
        if (is_open_to(files[i], group, S_IROTH)) continue;
        open = false;
        finding(findings, FINDING_WARNING, "group", "chgrp it to the group, and chmod g+r it",
                "%s can not be read by the group %s: executors of another user need it", files[i], name);
    }
    find_closed_folder(line->mapped_file.path, group, folder);
    if (folder[0] != '\0')
        finding(findings, FINDING_WARNING, "group", "chmod o+x it, or chgrp it to the group and chmod g+x it",
                "%s: the group %s can not pass the folder %s", line->mapped_file.origin, name, folder);
    else if (open)
        finding(findings, FINDING_OK, "group", NULL, "%s: the group %s can come to the pair's files",
                line->mapped_file.origin, name);
}

/* Folders that are missing are made by the rank; the others the library has an opinion on. */
static bool check_folder(struct findings *findings, const struct named_path *file) {
    char folder[PATH_MAX];
    existing_folder(file->path, folder);
    const size_t own = (size_t)(strrchr(file->path, '/') - file->path);
    if (strlen(folder) >= own || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0) return true;
    finding(findings, FINDING_FAILED, "folders", "name a folder that this user can make, or make it",
            "%s (%s): its folder can not be made in %s: %m", file->path, file->origin, folder);
    return false;
}

/* The names that a rank is going to give its files. False: one is not to be had. */
static bool check_names(struct findings *findings, const struct config_line *line) {
    const struct named_path *const names[] = {&line->mapped_file, &line->request_pipe, &line->notification_pipe};
    struct stale_files stale;
    struct failure failure;
    for (int i = 0; i < 3; i++)
        if (!check_folder(findings, names[i])) return false;
    switch (supply_stale_find(line, &stale, &failure)) {
        case SUPPLY_OK:
            break;
        case SUPPLY_ERROR_IN_USE:
            finding(findings, FINDING_WARNING, "pairs", "wait for the end of that run before the next one", "%s",
                    failure.text);
            return false;
        default:
            finding(findings, FINDING_FAILED, "pairs", NULL, "%s", failure.text);
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (stale.left[i])
            finding(findings, FINDING_WARNING, "pairs", "nothing: this user's next run replaces it; or supply-clean",
                    "%s (%s) was left by a rank that is dead", names[i]->path, names[i]->origin);
    return true;
}

static uint64_t needed_bytes(const struct settings *settings, const char *path) {
    const uint64_t bytes = RING_OFFSET + settings->block_bytes * settings->block_count;
    struct stat entry;
    /* What stands there is either replaced, or it is the pair itself. */
    const uint64_t there = lstat(path, &entry) == 0 && S_ISREG(entry.st_mode) ? (uint64_t)entry.st_blocks * 512 : 0;
    return bytes > there ? bytes - there : 0;
}

void doctor_pairs(struct findings *findings, const struct which_pairs *which, const struct config_lines *lines,
                  struct mapped_file_need *needs, size_t *count) {
    const unsigned before = findings->failed + findings->warnings;
    gid_t checked = NO_GROUP;
    *count = 0;
    size_t pairs = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (which->local_rank >= 0 && (size_t)which->local_rank != i) continue;
        pairs++;
        const struct config_line *line = &lines->lines[i];
        supply_options_t options;
        supply_options_init(&options);
        options.mapped_files = which->mapped_files;
        options.named_pipes = which->named_pipes;
        options.local_rank = (int)i;
        struct settings settings;
        struct failure failure;
        if (supply_settings(&options, &settings, &failure) == SUPPLY_OK) {
            needs[(*count)++] = (struct mapped_file_need){line, needed_bytes(&settings, line->mapped_file.path)};
            /* Mostly one for all. */
            if (settings.group != NO_GROUP && settings.group != checked)
                check_group(findings, which, line, settings.group);
            checked = settings.group;
        } else
            finding(findings, FINDING_FAILED, "config", NULL, "%s", failure.text);
        supply_settings_free(&settings);
        check_names(findings, line);
    }
    if (pairs == 0)
        finding(findings, FINDING_FAILED, "config", "launch/make-configs writes them",
                "the config files have no lines");
    else if (findings->failed + findings->warnings == before)
        finding(findings, FINDING_OK, "pairs", NULL, "nothing is in the way of %zu pair%s (%s)", pairs,
                pairs == 1 ? "" : "s", which->mapped_files);
}

/** supply-doctor: checks, before a run, for problems that would make it fail. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command_line.h"
#include "diagnose_machine.h"
#include "files/claimed_file.h"
#include "files/options.h"
#include "layout.h"

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
    return stat(path, &entry) == 0 && supply__is_open_to(&entry, group, others);
}

/* Finds the first folder above the file's own that the group cannot search; "" if there is none. */
static void find_closed_folder(const char *path, gid_t group, char folder[PATH_MAX]) {
    char own[PATH_MAX];
    const size_t length = (size_t)(strrchr(path, '/') - path);
    snprintf(own, sizeof own, "%.*s", (int)length, path);
    existing_folder(path, folder);
    /* The rank opens the file's own folder to the group. */
    do {
        if (strcmp(folder, own) != 0 && !is_open_to(folder, group, S_IXOTH)) return;
    } while (parent_folder(folder));
    folder[0] = '\0';
}

/* Can executors of another user, who are members of the group, reach the files? */
static void doctor_check_group(struct diagnosis *diagnosis, const struct pair_selection *selection,
                               const struct config_line *line, gid_t group) {
    char name[USER_TEXT_BYTES], user[USER_TEXT_BYTES], folder[PATH_MAX];
    supply__group_text(group, name);
    if (!is_member(group)) {
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "group",
                         "add the user to the group (usermod -aG) and log in again, or change group=",
                         "%s: this user, %s, is not in the group %s", line->mapped_file.origin,
                         supply__user_text(geteuid(), user), name);
        return;
    }
    const char *const files[] = {selection->mapped_files, selection->named_pipes};
    bool open = true;
    for (int i = 0; i < 2; i++) {
        if (is_open_to(files[i], group, S_IROTH)) continue;
        open = false;
        diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "group", "chgrp it to the group, and chmod g+r it",
                         "%s cannot be read by the group %s: executors of another user need it", files[i], name);
    }
    find_closed_folder(line->mapped_file.path, group, folder);
    if (folder[0] != '\0')
        diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "group",
                         "chmod o+x it, or chgrp it to the group and chmod g+x it",
                         "%s: the group %s cannot pass the folder %s", line->mapped_file.origin, name, folder);
    else if (open)
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "group", NULL, "%s: the group %s can reach the pair's files",
                         line->mapped_file.origin, name);
}

/* A rank makes missing folders. supply__stale_find() checks those that exist. */
static bool check_folder(struct diagnosis *diagnosis, const struct named_path *file) {
    char folder[PATH_MAX];
    existing_folder(file->path, folder);
    const size_t own = (size_t)(strrchr(file->path, '/') - file->path);
    const bool exists = strlen(folder) >= own;
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 || (exists && errno != EROFS)) return true;
    diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "folders",
                     errno == EROFS ? "set paths in /dev/shm, or in another tmpfs, or mount a volume there (on "
                                      "Kubernetes an emptyDir of medium Memory)"
                                    : "set a folder that this user can make, or make it",
                     "%s (%s): %s cannot be made in %s: %m", file->path, file->origin, exists ? "it" : "its folder",
                     folder);
    return false;
}

/* Can a rank make files of these names? */
static bool doctor_check_names(struct diagnosis *diagnosis, const struct config_line *line) {
    const struct named_path *const names[] = {&line->mapped_file, &line->request_pipe, &line->notification_pipe};
    struct stale_files stale;
    struct failure failure;
    for (int i = 0; i < 3; i++)
        if (!check_folder(diagnosis, names[i])) return false;
    switch (supply__stale_find(line, &stale, &failure)) {
        case SUPPLY_OK:
            break;
        case SUPPLY_ERROR_IN_USE:
            diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "pairs", "wait until that run has ended", "%s",
                             failure.text);
            return false;
        default:
            diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "pairs", NULL, "%s", failure.text);
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (stale.left[i])
            diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "pairs",
                             "none is needed: this user's next run replaces it; or run supply-clean",
                             "%s (%s) was left by a rank that is dead", names[i]->path, names[i]->origin);
    return true;
}

static uint64_t needed_bytes(const struct settings *settings, const char *path) {
    const uint64_t bytes = RING_OFFSET + settings->block_bytes * settings->block_count;
    struct stat entry;
    /* A file that exists is either stale, and replaced, or the pair's own. */
    const uint64_t existing = lstat(path, &entry) == 0 && S_ISREG(entry.st_mode) ? (uint64_t)entry.st_blocks * 512 : 0;
    return bytes > existing ? bytes - existing : 0;
}

/*
 * Checks the sizes on the config lines, the folders, the groups, and the files that already exist. Fills the first
 * *count entries of needs, which has one entry for each line; a line with an error has none.
 */
static void diagnose_pairs(struct diagnosis *diagnosis, const struct pair_selection *selection,
                           const struct config_lines *lines, struct mapped_file_need *needs, size_t *count) {
    const unsigned before = diagnosis->failed + diagnosis->warnings;
    gid_t checked = NO_GROUP;
    *count = 0;
    size_t pairs = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (selection->local_rank >= 0 && (size_t)selection->local_rank != i) continue;
        pairs++;
        const struct config_line *line = &lines->lines[i];
        supply_options_t options;
        supply_options_init(&options);
        options.mapped_files = selection->mapped_files;
        options.named_pipes = selection->named_pipes;
        options.local_rank = (int)i;
        struct settings settings;
        struct failure failure;
        if (supply__settings(&options, &settings, &failure) == SUPPLY_OK) {
            needs[(*count)++] = (struct mapped_file_need){line, needed_bytes(&settings, line->mapped_file.path)};
            /* Usually all lines have the same group: check it once. */
            if (settings.group != NO_GROUP && settings.group != checked)
                doctor_check_group(diagnosis, selection, line, settings.group);
            checked = settings.group;
        } else
            diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL, "%s", failure.text);
        supply__settings_free(&settings);
        doctor_check_names(diagnosis, line);
    }
    if (pairs == 0)
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", "write them with launch/make-configs",
                         "the config files have no lines");
    else if (diagnosis->failed + diagnosis->warnings == before)
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "pairs", NULL, "%zu pair%s can be opened (%s)", pairs,
                         pairs == 1 ? "" : "s", selection->mapped_files);
}

enum { FINDINGS = COMMAND_LINE_OWN, JSON };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"findings", required_argument, NULL, FINDINGS},
    {"json", no_argument, NULL, JSON},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-doctor",
    .options = options,
    .usage =
        "Usage: supply-doctor [options]\n"
        "Checks, before a run, for problems that would make it fail on this node. Run it as the user of the ranks. It\n"
        "prints one line for each check, and a fix. It changes nothing. launch/supply-doctor also checks Spark.\n"
        "\n"
        "Options:\n" COMMAND_LINE_FILES COMMAND_LINE_EVERY_LINE
        "  --findings FILE       also report the checks of another program: on each line STATUS, CHECK, TEXT and FIX,\n"
        "                        separated by tabs; STATUS is ok, warning, failed or skipped\n"
        "  --json                for programs: one JSON object on each line\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if a run can start (there may be warnings), 1 if a check has failed, 2 on a wrong option.\n",
};

static void check_config(struct diagnosis *diagnosis, struct pair_selection *selection) {
    struct config_lines lines;
    struct failure failure;
    if (supply__config_read(selection->mapped_files, selection->named_pipes, &lines, &failure) != SUPPLY_OK)
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL, "%s", failure.text);
    else if (selection->local_rank >= 0 && (size_t)selection->local_rank >= lines.count)
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL,
                         "--local-rank %d: the config files have %zu lines", selection->local_rank, lines.count);
    else {
        size_t count;
        struct mapped_file_need *needs = calloc(lines.count + 1, sizeof *needs);
        if (needs == NULL)
            diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL, "out of memory");
        else {
            diagnose_pairs(diagnosis, selection, &lines, needs, &count);
            diagnose_memory(diagnosis, needs, count);
            struct thread_limit threads;
            thread_limit_read(&threads, "");
            diagnose_threads(diagnosis, &threads, selection->local_rank < 0 ? lines.count : 1);
            diagnose_temporary(diagnosis);
            diagnose_nodes(diagnosis, NODES_FOLDER);
            diagnose_copies(diagnosis);
        }
        free(needs);
    }
    supply__config_free(&lines);
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    struct diagnosis diagnosis = {.stream = stdout};
    const char *others = NULL;
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        switch (option) {
            case FINDINGS:
                others = optarg;
                break;
            case JSON:
                diagnosis.json = true;
                break;
        }
    }
    command_line_config_files(&tool, &selection);
    diagnosis_report(&diagnosis, DIAGNOSIS_OK, "libsupply", NULL, "%s, contract %s", supply_version(),
                     supply_contract_version());
    check_config(&diagnosis, &selection);
    if (others == NULL)
        diagnosis_report(&diagnosis, DIAGNOSIS_SKIPPED, "spark", NULL, "launch/supply-doctor checks the Spark side");
    else if (!diagnosis_report_file(&diagnosis, others))
        diagnosis_report(&diagnosis, DIAGNOSIS_FAILED, "findings", NULL, "%s cannot be read: %m", others);
    return command_line_exit_status(&tool, diagnosis.failed > 0 || diagnosis.incomplete ? 1 : 0);
}

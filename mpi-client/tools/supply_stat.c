/** supply-stat: what the pairs of this node are doing. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "command_line.h"
#include "files/folder.h"
#include "stat_output.h"

/* Seconds between the two snapshots of a rate, if no interval is given. */
#define ONCE_SECONDS 1.0

#define DEFAULT_FOLDER "/dev/shm"

enum { INTERVAL = COMMAND_LINE_OWN, JSON, PROMETHEUS };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"interval", required_argument, NULL, INTERVAL},
    {"json", no_argument, NULL, JSON},
    {"prometheus", no_argument, NULL, PROMETHEUS},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-stat",
    .options = options,
    .operands = 1,
    .usage =
        "Usage: supply-stat [options] [FOLDER]\n"
        "Shows what the pairs of this node are doing: those of the config files if they are set, else those in\n"
        "FOLDER (default " DEFAULT_FOLDER ") and up to two levels below. It locks, changes and delays nothing.\n"
        "\n"
        "Options:\n" COMMAND_LINE_FILES COMMAND_LINE_EVERY_LINE
        "  --interval SECONDS    print a table every SECONDS until Ctrl-C (default: one, with rates of one second)\n"
        "  --json                for programs: one JSON object for each table; unknown values are null\n"
        "  --prometheus          for Prometheus: its text format 0.0.4, once, for the textfile collector of its\n"
        "                        node exporter or any HTTP server; unknown values are left out\n"
        "  --help, --version\n"
        "\n"
        "Columns:\n"
        "  PAIR                the local rank\n"
        "  EPOCH, PARTITION    of the last published block\n"
        "  ELEMENTS/S, GB/S    published since the previous table; 1 GB is 10^9 bytes\n"
        "  RING                blocks that the rank has not released, of all blocks\n"
        "  WAITS               the side that waits for the other, and for how long at most\n"
        "  RANK, TASK          process ids\n"
        "States:\n"
        "  absent     no mapped file: the rank has not started, or has ended\n"
        "  opening    the rank is about to publish its header\n"
        "  open       the rank is running, no task has attached yet\n"
        "  supplying  a task is attached\n"
        "  paused     the task has left, its next attempt has not attached yet\n"
        "  ending     everything is published, but one side has not seen the end yet\n"
        "  ended      both sides have seen the end\n"
        "  failed     one side has failed; its message is on the next line\n"
        "  stale      the rank is dead: run supply-clean to remove its files\n"
        "  no access  this user cannot read the mapped file\n"
        "  invalid    the mapped file is not as the contract says; the next line says why\n"
        "\n"
        "Exit status: 0, 1 if something failed, 2 on a wrong option, 128 + N when ended by signal N.\n",
};

struct watch {
    struct config_lines config; /* the pairs; no lines: those in the folder */
    int local_rank;
    const char *folder;
    double interval; /* 0: once */
    bool json;
    bool prometheus;
    struct pair_list list;
    struct pair_progress *progress; /* of each pair of the list */
};

static void report_denied(const char *folder) {
    struct stat entry;
    char owner[USER_TEXT_BYTES], line[PATH_MAX];
    if (lstat(folder, &entry) != 0) return;
    /* Another user has chosen the name. */
    supply__copy_line(line, sizeof line, folder, strlen(folder));
    fprintf(stderr,
            "%s: %s belongs to %s and is not open to this user: its pairs are not shown: run as that user, or as "
            "root\n",
            tool.name, line, supply__user_text(entry.st_uid, owner));
}

/* Lists the current pairs. */
static bool list_pairs(const struct watch *watch, struct pair_list *list, bool first) {
    bool listed;
    if (watch->folder == NULL)
        listed = pair_list_of_config(list, &watch->config, watch->local_rank);
    else
        listed = pair_list_find(list, watch->folder, first ? report_denied : NULL);
    if (!listed) {
        fprintf(stderr, "%s: %s: %m\n", tool.name, watch->folder ? watch->folder : "the pairs");
        pair_list_free(list);
    }
    return listed;
}

static const struct pair_progress *previous(const struct watch *watch, const char *mapped_file) {
    for (size_t i = 0; i < watch->list.count; i++)
        if (strcmp(watch->list.pairs[i].mapped_file, mapped_file) == 0) return &watch->progress[i];
    return NULL;
}

static void free_snapshots(struct watch *watch) {
    pair_list_free(&watch->list);
    free(watch->progress);
    watch->progress = NULL;
}

/* Takes a snapshot of every pair, and compares it with the previous one. */
static bool update(struct watch *watch, bool first) {
    struct pair_list list;
    if (!list_pairs(watch, &list, first)) return false;
    struct pair_progress *progress = calloc(list.count + 1, sizeof *progress);
    if (progress == NULL) {
        fprintf(stderr, "%s: out of memory\n", tool.name);
        pair_list_free(&list);
        return false;
    }
    for (size_t i = 0; i < list.count; i++)
        pair_progress(&progress[i], &list.pairs[i], previous(watch, list.pairs[i].mapped_file));
    free_snapshots(watch);
    watch->list = list;
    watch->progress = progress;
    return true;
}

static bool show(const struct watch *watch, bool redraws) {
    bool shown = true;
    if (watch->prometheus)
        prometheus_print(stdout, &watch->list, watch->progress);
    else if (watch->json)
        shown = stat_json_print(stdout, &watch->list, watch->progress);
    else
        stat_table_print(stdout, &watch->list, watch->progress, redraws);
    return command_line_exit_status(&tool, 0) == 0 && shown;
}

/* False: a signal was received. */
static bool pause_between(double seconds) {
    struct pollfd ready = {interruption_fd(), POLLIN, 0};
    while (interruption_signal() == 0) {
        const double milliseconds = seconds * 1e3;
        const int came = poll(&ready, 1, milliseconds < 1e9 ? (int)milliseconds : 1000000000);
        if (came >= 0 || errno != EINTR) return came == 0;
    }
    return false;
}

static int stat_run(struct watch *watch) {
    const bool redraws = watch->interval > 0 && !watch->json && isatty(STDOUT_FILENO);
    if (!update(watch, true)) return 1;
    do {
        if (!pause_between(watch->interval > 0 ? watch->interval : ONCE_SECONDS)) return 128 + interruption_signal();
        if (!update(watch, false) || !show(watch, redraws)) return 1;
    } while (watch->interval > 0);
    return 0;
}

static bool config_is_given(const struct pair_selection *selection) {
    return selection->mapped_files || selection->named_pipes || getenv("SUPPLY_MAPPED_FILES") ||
           getenv("SUPPLY_NAMED_PIPES");
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    struct watch watch = {0};
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        switch (option) {
            case INTERVAL:
                watch.interval = command_line_seconds(&tool, "--interval", optarg);
                break;
            case JSON:
                watch.json = true;
                break;
            case PROMETHEUS:
                watch.prometheus = true;
                break;
        }
    }
    watch.folder = argv[optind];
    if (watch.folder == NULL && !config_is_given(&selection)) watch.folder = DEFAULT_FOLDER;
    if (watch.folder != NULL && (selection.mapped_files || selection.named_pipes || selection.local_rank >= 0)) {
        fprintf(stderr,
                "%s: --mapped-files, --named-pipes and --local-rank select pairs of config files, not of a folder\n",
                tool.name);
        command_line_usage_error(&tool);
    }
    if (watch.prometheus && (watch.json || watch.interval > 0)) {
        fprintf(stderr, "%s: --prometheus prints its text once: leave --json and --interval out\n", tool.name);
        command_line_usage_error(&tool);
    }
    if (interruption_install() != 0) {
        fprintf(stderr, "%s: cannot install signal handlers: %m\n", tool.name);
        return 1;
    }
    int exit_status = 1;
    if (watch.folder != NULL || command_line_read_config(&tool, &selection, &watch.config)) {
        watch.local_rank = selection.local_rank;
        exit_status = stat_run(&watch);
    }
    free_snapshots(&watch);
    supply__config_free(&watch.config);
    return exit_status;
}

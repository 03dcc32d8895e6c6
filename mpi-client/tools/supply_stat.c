/** supply-stat: what the pairs of this node are doing. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_line.h"
#include "interruption.h"
#include "stat_json.h"
#include "stat_table.h"
#include "users.h"

#include <sys/stat.h>

/* Between the two looks that a rate takes, where no other interval is given. */
#define ONCE_SECONDS 1.0

#define DEFAULT_FOLDER "/dev/shm"

enum { INTERVAL = COMMAND_LINE_OWN, JSON };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"interval", required_argument, NULL, INTERVAL},
    {"json", no_argument, NULL, JSON},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-stat",
    .options = options,
    .operands = 1,
    .usage =
        "usage: supply-stat [options] [FOLDER]\n"
        "Shows what the pairs of this node are doing: those of the config files, where some are given, else those in "
        "FOLDER\n"
        "(default " DEFAULT_FOLDER
        ") and up to two folders below it. It only looks: it locks, changes and delays nothing.\n"
        "\n"
        "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
        "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
        "  --local-rank N        only this line of them, from 0 (default: every line)\n"
        "  --interval SECONDS    go on until Ctrl-C, a table each time (default: one table, of the rates of one "
        "second)\n"
        "  --json                for programs: one object a line, a line a table; null is what is not known\n"
        "  --help, --version\n"
        "\n"
        "Columns: PAIR, the local rank; STATE; EPOCH and PARTITION of the last block that was published; ELEMENTS/S "
        "and GB/S\n"
        "(10^9 bytes), published since the table before; RING, blocks that the rank has not released, of all; WAITS, "
        "who\n"
        "can not go on before the other does something, and for how long at most; RANK and TASK, their processes.\n"
        "States:\n"
        "  absent     there is no mapped file: the rank has not started, or has ended\n"
        "  opening    the rank is about to publish it\n"
        "  open       the rank is there, no task has come yet\n"
        "  supplying  a task is attached\n"
        "  paused     the task has left, its next attempt has not come yet\n"
        "  ending     all is published; the rank, or the task, has not seen the end yet\n"
        "  ended      both have\n"
        "  failed     one side has given up; its words stand below\n"
        "  stale      the rank is dead: supply-clean removes what it left\n"
        "  no access  this user may not read it\n"
        "  invalid    what is there is not as the contract says; what stands below\n"
        "\n"
        "Exit status: 0, 1 if something failed, 2 on a wrong option, 128 + N when ended by signal N.\n",
};

struct watch {
    struct config_lines config; /* of which pairs; no lines: those in the folder */
    int local_rank;
    const char *folder;
    double interval; /* 0: once */
    bool json;
    struct pair_list list;
    struct pair_progress *progress; /* of each pair of the list */
};

static void tell_denied(const char *folder) {
    struct stat entry;
    char owner[USER_TEXT_BYTES];
    if (lstat(folder, &entry) == 0)
        fprintf(stderr,
                "%s: %s belongs to %s and is not open to this user: pairs in it are not shown: look as that user, or "
                "as root\n",
                tool.name, folder, supply_user_text(entry.st_uid, owner));
}

/* The pairs that there are now. */
static bool list_pairs(const struct watch *watch, struct pair_list *list, bool first) {
    bool listed;
    if (watch->folder == NULL)
        listed = pair_list_of_config(list, &watch->config, watch->local_rank);
    else
        listed = pair_list_find(list, watch->folder, first ? tell_denied : NULL);
    if (!listed) {
        fprintf(stderr, "%s: %s: %m\n", tool.name, watch->folder ? watch->folder : "the pairs");
        pair_list_free(list);
    }
    return listed;
}

static const struct pair_progress *earlier(const struct watch *watch, const char *mapped_file) {
    for (size_t i = 0; i < watch->list.count; i++)
        if (strcmp(watch->list.pairs[i].mapped_file, mapped_file) == 0) return &watch->progress[i];
    return NULL;
}

static void forget(struct watch *watch) {
    pair_list_free(&watch->list);
    free(watch->progress);
    watch->progress = NULL;
}

/* Looks at every pair, beside what the look before has seen. */
static bool look(struct watch *watch, bool first) {
    struct pair_list list;
    if (!list_pairs(watch, &list, first)) return false;
    struct pair_progress *progress = calloc(list.count + 1, sizeof *progress);
    if (progress == NULL) {
        fprintf(stderr, "%s: out of memory\n", tool.name);
        pair_list_free(&list);
        return false;
    }
    for (size_t i = 0; i < list.count; i++)
        pair_progress(&progress[i], &list.pairs[i], earlier(watch, list.pairs[i].mapped_file));
    forget(watch);
    watch->list = list;
    watch->progress = progress;
    return true;
}

static bool show(const struct watch *watch, bool in_place) {
    bool shown = true;
    if (watch->json)
        shown = stat_json_print(stdout, &watch->list, watch->progress);
    else
        stat_table_print(stdout, &watch->list, watch->progress, in_place);
    return command_line_end(&tool, 0) == 0 && shown;
}

/* False: a signal came. */
static bool pause_between(double seconds) {
    struct pollfd ready = {interruption_fd(), POLLIN, 0};
    while (interruption_signal() == 0) {
        const double milliseconds = seconds * 1e3;
        const int came = poll(&ready, 1, milliseconds < 1e9 ? (int)milliseconds : 1000000000);
        if (came >= 0 || errno != EINTR) return came == 0;
    }
    return false;
}

static int run(struct watch *watch) {
    const bool in_place = watch->interval > 0 && !watch->json && isatty(STDOUT_FILENO);
    if (!look(watch, true)) return 1;
    do {
        if (!pause_between(watch->interval > 0 ? watch->interval : ONCE_SECONDS)) return 128 + interruption_signal();
        if (!look(watch, false) || !show(watch, in_place)) return 1;
    } while (watch->interval > 0);
    return 0;
}

static bool config_is_given(const struct which_pairs *which) {
    return which->mapped_files || which->named_pipes || getenv("SUPPLY_MAPPED_FILES") || getenv("SUPPLY_NAMED_PIPES");
}

int main(int argc, char **argv) {
    struct which_pairs which = WHICH_PAIRS_NOT_GIVEN;
    struct watch watch = {0};
    for (int option; (option = command_line_next(&tool, argc, argv, &which)) != -1;) {
        switch (option) {
            case INTERVAL:
                watch.interval = command_line_seconds(&tool, "--interval", optarg);
                break;
            case JSON:
                watch.json = true;
                break;
        }
    }
    watch.folder = argv[optind];
    if (watch.folder == NULL && !config_is_given(&which)) watch.folder = DEFAULT_FOLDER;
    if (watch.folder != NULL && (which.mapped_files || which.named_pipes || which.local_rank >= 0)) {
        fprintf(
            stderr,
            "%s: --mapped-files, --named-pipes and --local-rank are for the pairs of config files, not of a folder\n",
            tool.name);
        command_line_mistake(&tool);
    }
    if (interruption_install() != 0) {
        fprintf(stderr, "%s: signals can not be handled: %m\n", tool.name);
        return 1;
    }
    int exit_status = 1;
    if (watch.folder != NULL || command_line_read_config(&tool, &which, &watch.config)) {
        watch.local_rank = which.local_rank;
        exit_status = run(&watch);
    }
    forget(&watch);
    supply_config_free(&watch.config);
    return exit_status;
}

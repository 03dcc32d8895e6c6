/** supply-clean: removes what dead ranks left of their pairs. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "command_line.h"
#include "config_files.h"
#include "supply.h"

static const struct tool tool = {
    "supply-clean",
    "usage: supply-clean [options]\n"
    "Removes the mapped files and named pipes whose rank is dead, and prints the path of each that it removed.\n"
    "A living pair is left alone.\n"
    "\n"
    "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
    "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
    "  --local-rank N        only this line of them, from 0 (default: every line)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 if nothing is left, 1 if a pair lives or something failed, 2 on a wrong option.\n",
};

static bool exists(const char *path) {
    struct stat entry;
    return lstat(path, &entry) == 0;
}

static bool clean(const struct config_line *line) {
    const char *const paths[] = {line->mapped_file.path, line->request_pipe.path, line->notification_pipe.path};
    const bool existed[] = {exists(paths[0]), exists(paths[1]), exists(paths[2])};
    supply_options_t options;
    supply_options_init(&options);
    options.mapped_file = paths[0];
    options.request_pipe = paths[1];
    options.notification_pipe = paths[2];
    char error[2048];
    supply_status_t status = supply_remove_stale(&options, error, sizeof error);
    if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", tool.name, error);
    for (int i = 0; i < 3; i++)
        if (existed[i] && !exists(paths[i])) puts(paths[i]);
    return status == SUPPLY_OK;
}

static const char *given(const char *option, const char *name, const char *variable) {
    const char *file = option ? option : getenv(variable);
    if (file != NULL) return file;
    fprintf(stderr, "%s: no %s given: set it, or %s\n", tool.name, name, variable);
    exit(2);
}

static int clean_lines(const struct config_lines *lines, int local_rank) {
    if (local_rank >= 0 && (size_t)local_rank >= lines->count) {
        fprintf(stderr, "%s: --local-rank %d: the config files have %zu lines\n", tool.name, local_rank, lines->count);
        return 1;
    }
    bool cleaned = true;
    for (size_t i = 0; i < lines->count; i++)
        if (local_rank < 0 || (size_t)local_rank == i) cleaned &= clean(&lines->lines[i]);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "%s: standard output: %m\n", tool.name);
        return 1;
    }
    return cleaned ? 0 : 1;
}

int main(int argc, char **argv) {
    enum { MAPPED_FILES = 256, NAMED_PIPES, LOCAL_RANK, HELP, VERSION };
    static const struct option names[] = {
        {"mapped-files", required_argument, NULL, MAPPED_FILES},
        {"named-pipes", required_argument, NULL, NAMED_PIPES},
        {"local-rank", required_argument, NULL, LOCAL_RANK},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    argv[0] = (char *)tool.name; /* for getopt's messages */
    const char *mapped_files = NULL, *named_pipes = NULL;
    int local_rank = -1;
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (option) {
        case MAPPED_FILES: mapped_files = optarg; break;
        case NAMED_PIPES: named_pipes = optarg; break;
        case LOCAL_RANK: local_rank = command_line_number(&tool, "--local-rank", optarg); break;
        case HELP: return command_line_help(&tool);
        case VERSION: return command_line_version(&tool);
        default: command_line_mistake(&tool);
        }
    }
    if (optind != argc) {
        fprintf(stderr, "%s: unexpected argument '%s'\n", tool.name, argv[optind]);
        command_line_mistake(&tool);
    }
    struct config_lines lines;
    struct failure failure;
    int exit_status = 1;
    if (supply_config_read(given(mapped_files, "--mapped-files", "SUPPLY_MAPPED_FILES"),
                           given(named_pipes, "--named-pipes", "SUPPLY_NAMED_PIPES"), &lines, &failure) != SUPPLY_OK)
        fprintf(stderr, "%s: %s\n", tool.name, failure.text);
    else exit_status = clean_lines(&lines, local_rank);
    supply_config_free(&lines);
    return exit_status;
}

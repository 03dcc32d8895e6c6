/** What all tools do alike: options, messages, exit statuses, and SIGINT and SIGTERM as a descriptor to poll. */
#include "command_line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supply.h"

void command_line_usage_error(const struct tool *tool) {
    fputs(tool->usage, stderr);
    exit(2);
}

static _Noreturn void refuse(const struct tool *tool, const char *option, const char *text, const char *wanted) {
    fprintf(stderr, "%s: %s: '%s' is not %s\n", tool->name, option, text, wanted);
    command_line_usage_error(tool);
}

/* Parses a whole number, 0 or larger, or exits with 2. */
static int command_line_number(const struct tool *tool, const char *option, const char *text) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < 0 || number > INT_MAX)
        refuse(tool, option, text, "a whole number, 0 or larger");
    return (int)number;
}

double command_line_seconds(const struct tool *tool, const char *option, const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(seconds) || !(seconds > 0))
        refuse(tool, option, text, "a number of seconds larger than 0");
    return seconds;
}

size_t command_line_size(const struct tool *tool, const char *option, const char *text) {
    size_t size = supply__config_size(text);
    if (size == 0) refuse(tool, option, text, "a size: write it as 16MiB, 64KiB, 1GiB or in bytes");
    return size;
}

int command_line_exit_status(const struct tool *tool, int exit_status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return exit_status;
    fprintf(stderr, "%s: standard output: %m\n", tool->name);
    return 1;
}

static _Noreturn void print_help(const struct tool *tool) {
    fputs(tool->usage, stdout);
    exit(command_line_exit_status(tool, 0));
}

static _Noreturn void print_version(const struct tool *tool) {
    printf("%s %s (contract %s)\n", tool->name, supply_version(), supply_contract_version());
    exit(command_line_exit_status(tool, 0));
}

int command_line_next(const struct tool *tool, int argc, char **argv, struct pair_selection *selection) {
    argv[0] = (char *)tool->name; /* for getopt's messages */
    for (int option; (option = getopt_long(argc, argv, "", tool->options, NULL)) != -1;) {
        switch (option) {
            case COMMAND_LINE_MAPPED_FILES:
                selection->mapped_files = optarg;
                break;
            case COMMAND_LINE_NAMED_PIPES:
                selection->named_pipes = optarg;
                break;
            case COMMAND_LINE_LOCAL_RANK:
                selection->local_rank = command_line_number(tool, "--local-rank", optarg);
                break;
            case COMMAND_LINE_HELP:
                print_help(tool);
            case COMMAND_LINE_VERSION:
                print_version(tool);
            case '?':
                command_line_usage_error(tool);
            default:
                return option;
        }
    }
    if (argc - optind <= tool->operands) return -1;
    fprintf(stderr, "%s: unexpected argument '%s'\n", tool->name, argv[optind + tool->operands]);
    command_line_usage_error(tool);
}

static const char *from_option_or_environment(const struct tool *tool, const char *file, const char *option,
                                              const char *variable) {
    if (file == NULL) file = getenv(variable);
    if (file != NULL) return file;
    fprintf(stderr, "%s: no %s given: set it, or %s\n", tool->name, option, variable);
    exit(2);
}

void command_line_config_files(const struct tool *tool, struct pair_selection *selection) {
    selection->mapped_files =
        from_option_or_environment(tool, selection->mapped_files, "--mapped-files", "SUPPLY_MAPPED_FILES");
    selection->named_pipes =
        from_option_or_environment(tool, selection->named_pipes, "--named-pipes", "SUPPLY_NAMED_PIPES");
}

bool command_line_read_config(const struct tool *tool, struct pair_selection *selection, struct config_lines *lines) {
    struct failure failure;
    command_line_config_files(tool, selection);
    if (supply__config_read(selection->mapped_files, selection->named_pipes, lines, &failure) != SUPPLY_OK) {
        fprintf(stderr, "%s: %s\n", tool->name, failure.text);
        return false;
    }
    if (selection->local_rank < 0 || (size_t)selection->local_rank < lines->count) return true;
    fprintf(stderr, "%s: --local-rank %d: the config files have %zu lines\n", tool->name, selection->local_rank,
            lines->count);
    return false;
}

static volatile sig_atomic_t received;
/* -1: not installed, and poll() skips it. */
static int ends[2] = {-1, -1};

static void command_line_receive(int number) {
    int error = errno;
    received = number;
    /* If the pipe is full, it is readable already. */
    ssize_t ignored = write(ends[1], "", 1);
    (void)ignored;
    errno = error;
}

int interruption_install(void) {
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    /* Without SA_RESTART, so that a signal also ends a write that waits for a stalled reader. */
    struct sigaction action = {.sa_handler = command_line_receive};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0) return -1;
    action.sa_handler = SIG_IGN;
    return sigaction(SIGPIPE, &action, NULL);
}

int interruption_fd(void) { return ends[0]; }

int interruption_signal(void) { return received; }

bool interruption_came(void *unused) {
    (void)unused;
    return received != 0;
}

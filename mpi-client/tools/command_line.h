/**
 * The command line of a tool: the options that all tools have, and the signals that end it. A wrong option prints the
 * usage and exits with 2.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "files/config_files.h"

/** A tool and its command line. */
struct tool {
    const char *name; /**< for messages */
    const char *usage;
    const struct option *options; /**< COMMAND_LINE_COMMON, then the tool's own options, then COMMAND_LINE_END */
    int operands;                 /**< maximum number of arguments that are not options */
};

/** The options of every tool. A tool's own options have values from COMMAND_LINE_OWN on. */
enum {
    COMMAND_LINE_MAPPED_FILES = 256,
    COMMAND_LINE_NAMED_PIPES,
    COMMAND_LINE_LOCAL_RANK,
    COMMAND_LINE_HELP,
    COMMAND_LINE_VERSION,
    COMMAND_LINE_OWN
};
#define COMMAND_LINE_COMMON                                                                                            \
    {"mapped-files", required_argument, NULL, COMMAND_LINE_MAPPED_FILES},                                              \
        {"named-pipes", required_argument, NULL, COMMAND_LINE_NAMED_PIPES},                                            \
        {"local-rank", required_argument, NULL, COMMAND_LINE_LOCAL_RANK},                                              \
        {"help", no_argument, NULL, COMMAND_LINE_HELP}, {                                                              \
        "version", no_argument, NULL, COMMAND_LINE_VERSION                                                             \
    }
#define COMMAND_LINE_END {NULL, 0, NULL, 0}

/** Lines of a usage: the config files; and which of their lines a rank, or a tool, takes. */
#define COMMAND_LINE_FILES                                                                                             \
    "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"                                       \
    "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
#define COMMAND_LINE_LINE "  --local-rank N        line of the config files, from 0 (default: from the MPI launcher)\n"
#define COMMAND_LINE_EVERY_LINE                                                                                        \
    "  --local-rank N        only this line of the config files, from 0 (default: every line)\n"

/** The options that select pairs. */
struct pair_selection {
    const char *mapped_files; /**< NULL: not given */
    const char *named_pipes;  /**< NULL: not given */
    int local_rank;           /**< -1: not given */
};

#define NO_PAIR_SELECTION ((struct pair_selection){.local_rank = -1})

/**
 * Returns the next of the tool's own options, with its argument in optarg, or -1 after the last one. Stores the common
 * options in *selection. --help and --version print and exit. Too many arguments are an error.
 */
int command_line_next(const struct tool *tool, int argc, char **argv, struct pair_selection *selection);

/** Prints the usage on stderr and exits with 2. Print the problem first. */
_Noreturn void command_line_usage_error(const struct tool *tool);

/** Parses a number of seconds larger than 0, or exits with 2. */
double command_line_seconds(const struct tool *tool, const char *option, const char *text);

/** Parses a size as the config files have it, in bytes, or exits with 2. */
size_t command_line_size(const struct tool *tool, const char *option, const char *text);

/** Sets the config files that no option named from the environment. Exits with 2 if that names none, either. */
void command_line_config_files(const struct tool *tool, struct pair_selection *selection);

/**
 * Reads the config files, and checks that local_rank is one of their lines. On failure prints why and returns false.
 * Free *lines with supply__config_free() in both cases.
 */
bool command_line_read_config(const struct tool *tool, struct pair_selection *selection, struct config_lines *lines);

/** Flushes standard output. Returns exit_status, or prints the error and returns 1 if the output was not written. */
int command_line_exit_status(const struct tool *tool, int exit_status);

/* SIGINT and SIGTERM as a descriptor to poll, so that a tool removes its pair before it exits. */

/** Installs the handlers. Ignores SIGPIPE, so that write() to a closed pipe fails. 0, or -1 and errno. */
int interruption_install(void);

/** A descriptor that becomes readable with the first signal. */
int interruption_fd(void);

/** The signal that was received; 0: none. */
int interruption_signal(void);

/** Whether there was one, as options.interrupted of the library. */
bool interruption_came(void *unused);

/** What the command lines of the tools have in common. A mistake is told on stderr and exits with 2. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <getopt.h>
#include <stddef.h>

#include "config_files.h"

/** A program, and its command line. */
struct tool {
    const char *name; /**< for messages */
    const char *usage;
    const struct option *options; /**< COMMAND_LINE_COMMON, then its own, then COMMAND_LINE_END */
    int operands;                 /**< how many arguments beside options it takes at most */
};

/** The options of every tool. A tool's own have values from COMMAND_LINE_OWN on. */
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

/** Which pairs. */
struct which_pairs {
    const char *mapped_files; /**< NULL: not given */
    const char *named_pipes;  /**< NULL: not given */
    int local_rank;           /**< -1: not given */
};

#define WHICH_PAIRS_NOT_GIVEN ((struct which_pairs){.local_rank = -1})

/**
 * The next of the tool's own options, its argument in optarg. Takes in the common ones; --help and --version print and
 * exit. -1: there is none left, and the arguments from argv[optind] on are no more than the tool takes.
 */
int command_line_next(const struct tool *tool, int argc, char **argv, struct which_pairs *which);

/** Exits with 2 behind what has been told, and the usage. */
_Noreturn void command_line_mistake(const struct tool *tool);

/** A whole number from 0 on. */
int command_line_number(const struct tool *tool, const char *option, const char *text);

/** Seconds above 0. */
double command_line_seconds(const struct tool *tool, const char *option, const char *text);

/** A size as in the config files. */
size_t command_line_size(const struct tool *tool, const char *option, const char *text);

/** The config files: those that were given, or the environment's. Exits with 2 where neither names one. */
void command_line_config_files(const struct tool *tool, struct which_pairs *which);

/**
 * Reads the config files, of which local_rank is one line. False: it has been told what is wrong with them. lines is to
 * be freed by supply_config_free() either way.
 */
bool command_line_read_config(const struct tool *tool, struct which_pairs *which, struct config_lines *lines);

/** Tells that standard output can not be written, if so. Returns the exit status: what it would be without that, or 1.
 */
int command_line_end(const struct tool *tool, int exit_status);

#endif

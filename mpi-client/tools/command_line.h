/** What the command lines of the tools have in common. A mistake is told on stderr and exits with 2. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stddef.h>

/** The program's name, for messages, and its usage. */
struct tool {
    const char *name;
    const char *usage;
};

/** getopt_long() has refused an option, or there is an argument too many. */
_Noreturn void command_line_mistake(const struct tool *tool);

/** A whole number from 0 on. */
int command_line_number(const struct tool *tool, const char *option, const char *text);

/** Seconds above 0. */
double command_line_seconds(const struct tool *tool, const char *option, const char *text);

/** A size as in the config files. */
size_t command_line_size(const struct tool *tool, const char *option, const char *text);

/** Prints the usage (--help) or the version (--version) on stdout. Returns the exit status. */
int command_line_help(const struct tool *tool);
int command_line_version(const struct tool *tool);

#endif

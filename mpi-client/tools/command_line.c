#include "command_line.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config_files.h"
#include "supply.h"

void command_line_mistake(const struct tool *tool) {
    fputs(tool->usage, stderr);
    exit(2);
}

static _Noreturn void refuse(const struct tool *tool, const char *option, const char *text, const char *wanted) {
    fprintf(stderr, "%s: %s: '%s' is not %s\n", tool->name, option, text, wanted);
    command_line_mistake(tool);
}

int command_line_number(const struct tool *tool, const char *option, const char *text) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < 0 || number > INT_MAX)
        refuse(tool, option, text, "a whole number from 0 on");
    return (int)number;
}

double command_line_seconds(const struct tool *tool, const char *option, const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(seconds) || !(seconds > 0))
        refuse(tool, option, text, "a number of seconds above 0");
    return seconds;
}

size_t command_line_size(const struct tool *tool, const char *option, const char *text) {
    size_t size = supply_config_size(text);
    if (size == 0) refuse(tool, option, text, "a size: write it as 16MiB, 64KiB, 1GiB or in bytes");
    return size;
}

static int print(const struct tool *tool, const char *text) {
    if (fputs(text, stdout) != EOF && fflush(stdout) == 0) return 0;
    fprintf(stderr, "%s: standard output: %m\n", tool->name);
    return 1;
}

int command_line_help(const struct tool *tool) { return print(tool, tool->usage); }

int command_line_version(const struct tool *tool) {
    char text[128];
    snprintf(text, sizeof text, "%s %s (contract %s)\n", tool->name, supply_version(), supply_contract_version());
    return print(tool, text);
}

/** supply-clean: removes the files that dead ranks left. */
#include <stdio.h>

#include "command_line.h"
#include "stale.h"
#include "supply.h"

enum { DRY_RUN = COMMAND_LINE_OWN };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"dry-run", no_argument, NULL, DRY_RUN},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-clean",
    .options = options,
    .usage =
        "usage: supply-clean [options]\n"
        "Removes the mapped files and named pipes of dead ranks, and prints the path of each file that it removed.\n"
        "It never touches a pair whose rank is alive.\n"
        "\n"
        "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
        "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
        "  --local-rank N        only this line of the config files, from 0 (default: every line)\n"
        "  --dry-run             print what would be removed, and remove nothing\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if nothing is left (with --dry-run: would be left), 1 if a rank is alive or something failed,\n"
        "2 on a wrong option.\n",
};

static bool clean(const struct config_line *line, bool dry_run) {
    const char *const paths[] = {line->mapped_file.path, line->request_pipe.path, line->notification_pipe.path};
    struct stale_files stale;
    struct failure failure;
    const supply_status_t status =
        dry_run ? supply_stale_find(line, &stale, &failure) : supply_stale_remove(line, &stale, &failure);
    if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", tool.name, failure.text);
    for (int i = 0; i < 3; i++)
        if (stale.left[i]) puts(paths[i]);
    return status == SUPPLY_OK;
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    bool dry_run = false;
    while (command_line_next(&tool, argc, argv, &selection) == DRY_RUN) dry_run = true;
    struct config_lines lines;
    bool cleaned = command_line_read_config(&tool, &selection, &lines);
    if (cleaned)
        for (size_t i = 0; i < lines.count; i++)
            if (selection.local_rank < 0 || (size_t)selection.local_rank == i)
                cleaned &= clean(&lines.lines[i], dry_run);
    supply_config_free(&lines);
    return command_line_exit_status(&tool, cleaned ? 0 : 1);
}

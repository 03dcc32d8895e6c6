/** supply-clean: removes the files that dead ranks left, and results and resident files that nobody needs. */
#include <stdio.h>

#include "clean_resident_files.h"
#include "clean_results.h"
#include "command_line.h"
#include "stale.h"
#include "supply.h"

enum { DRY_RUN = COMMAND_LINE_OWN, RESULTS_FOLDER, KEEP_RESULTS, UNREAD_RESULTS, RESIDENT_FOLDER };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"dry-run", no_argument, NULL, DRY_RUN},
    {"results-folder", required_argument, NULL, RESULTS_FOLDER},
    {"keep-results", no_argument, NULL, KEEP_RESULTS},
    {"unread-results", no_argument, NULL, UNREAD_RESULTS},
    {"resident-folder", required_argument, NULL, RESIDENT_FOLDER},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-clean",
    .options = options,
    .usage =
        "Usage: supply-clean [options]\n"
        "Removes the mapped files and named pipes of dead ranks, and prints the path of each file that it removed.\n"
        "It never touches a pair whose rank is alive. Of dead ranks it also removes results: those that are not "
        "sealed,\n"
        "and sealed ones that nobody reads and whose Spark process has ended. It cannot tell that of a process of "
        "another\n"
        "container (PID namespace), and keeps those.\n"
        "\n"
        "Options:\n"
        "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
        "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
        "  --local-rank N        only this line of the config files, from 0 (default: every line)\n"
        "  --results-folder DIR  folder of the results (default: SUPPLY_RESULTS_FOLDER, or that of the mapped file)\n"
        "  --keep-results        keep all sealed results\n"
        "  --unread-results      also remove sealed results that nobody reads now, whether their Spark process lives "
        "or "
        "not\n"
        "  --resident-folder DIR\n"
        "                        also remove the resident files of dead ranks in this folder, as the user of the "
        "files\n"
        "                        (the executors' user), unless a process reads them; never those of --keep\n"
        "                        (default: none)\n"
        "  --dry-run             print what would be removed, and remove nothing\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if nothing is left (with --dry-run: would be left), 1 if a rank is alive or something failed,\n"
        "2 on a wrong option.\n",
};

static bool clean(const struct config_line *line, const struct cleaning *cleaning) {
    const char *const paths[] = {line->mapped_file.path, line->request_pipe.path, line->notification_pipe.path};
    struct stale_files stale;
    struct failure failure;
    const supply_status_t status =
        cleaning->dry_run ? supply_stale_find(line, &stale, &failure) : supply_stale_remove(line, &stale, &failure);
    if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", tool.name, failure.text);
    for (int i = 0; i < 3; i++)
        if (stale.left[i]) puts(paths[i]);
    /* Resident files are judged by themselves: they may belong to another user of the pair's group than its folder. */
    const bool cleaned = status == SUPPLY_OK && clean_results(line, cleaning);
    return clean_resident_files(line, cleaning) && cleaned;
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    struct cleaning cleaning = {.tool = tool.name};
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) >= 0;) {
        if (option == RESULTS_FOLDER)
            cleaning.results_folder = optarg;
        else if (option == KEEP_RESULTS)
            cleaning.keep_results = true;
        else if (option == UNREAD_RESULTS)
            cleaning.unread_results = true;
        else if (option == RESIDENT_FOLDER)
            cleaning.resident_folder = optarg;
        else
            cleaning.dry_run = true;
    }
    struct config_lines lines;
    bool cleaned = command_line_read_config(&tool, &selection, &lines);
    if (cleaned)
        for (size_t i = 0; i < lines.count; i++)
            if (selection.local_rank < 0 || (size_t)selection.local_rank == i)
                cleaned &= clean(&lines.lines[i], &cleaning);
    supply_config_free(&lines);
    return command_line_exit_status(&tool, cleaned ? 0 : 1);
}

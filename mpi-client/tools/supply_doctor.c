/** supply-doctor: checks, before a run, for problems that would make it fail. */
#include <stdlib.h>

#include "command_line.h"
#include "diagnose_copies.h"
#include "diagnose_memory.h"
#include "diagnose_nodes.h"
#include "diagnose_pairs.h"

enum { FINDINGS = COMMAND_LINE_OWN, JSON };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"findings", required_argument, NULL, FINDINGS},
    {"json", no_argument, NULL, JSON},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-doctor",
    .options = options,
    .usage =
        "Usage: supply-doctor [options]\n"
        "Checks, before a run, for problems that would make it fail on this node. Run it as the user of the ranks. It\n"
        "prints one line for each check, and a fix. It changes nothing. launch/supply-doctor also checks Spark.\n"
        "\n"
        "Options:\n"
        "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
        "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
        "  --local-rank N        only this line of the config files, from 0 (default: every line)\n"
        "  --findings FILE       also report the checks of another program: on each line STATUS, CHECK, TEXT and FIX,\n"
        "                        separated by tabs; STATUS is ok, warning, failed or skipped\n"
        "  --json                for programs: one JSON object on each line\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if a run can start (there may be warnings), 1 if a check has failed, 2 on a wrong option.\n",
};

static void check_config(struct diagnosis *diagnosis, struct pair_selection *selection) {
    struct config_lines lines;
    struct failure failure;
    if (supply_config_read(selection->mapped_files, selection->named_pipes, &lines, &failure) != SUPPLY_OK)
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL, "%s", failure.text);
    else if (selection->local_rank >= 0 && (size_t)selection->local_rank >= lines.count)
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL,
                         "--local-rank %d: the config files have %zu lines", selection->local_rank, lines.count);
    else {
        size_t count;
        struct mapped_file_need *needs = calloc(lines.count + 1, sizeof *needs);
        if (needs == NULL)
            diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "config", NULL, "out of memory");
        else {
            diagnose_pairs(diagnosis, selection, &lines, needs, &count);
            diagnose_memory(diagnosis, needs, count);
            diagnose_nodes(diagnosis, NODES_FOLDER);
            diagnose_copies(diagnosis);
        }
        free(needs);
    }
    supply_config_free(&lines);
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    struct diagnosis diagnosis = {.stream = stdout};
    const char *others = NULL;
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        switch (option) {
            case FINDINGS:
                others = optarg;
                break;
            case JSON:
                diagnosis.json = true;
                break;
        }
    }
    command_line_config_files(&tool, &selection);
    diagnosis_report(&diagnosis, DIAGNOSIS_OK, "libsupply", NULL, "%s, contract %s", supply_version(),
                     supply_contract_version());
    check_config(&diagnosis, &selection);
    if (others == NULL)
        diagnosis_report(&diagnosis, DIAGNOSIS_SKIPPED, "spark", NULL, "launch/supply-doctor checks the Spark side");
    else if (!diagnosis_report_file(&diagnosis, others))
        diagnosis_report(&diagnosis, DIAGNOSIS_FAILED, "findings", NULL, "%s cannot be read: %m", others);
    return command_line_exit_status(&tool, diagnosis.failed > 0 || diagnosis.incomplete ? 1 : 0);
}

/** supply-doctor: looks, before a run, for what would make it fail. */
#include <stdlib.h>

#include "command_line.h"
#include "doctor_memory.h"
#include "doctor_pairs.h"

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
        "usage: supply-doctor [options]\n"
        "Looks, before a run, for what would make it fail on this node, as the user who runs it: a line a check, and "
        "below it\n"
        "what to do. Changes nothing. launch/supply-doctor looks at the Spark side, too.\n"
        "\n"
        "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
        "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
        "  --local-rank N        only this line of them, from 0 (default: every line)\n"
        "  --findings FILE       what another program has found, to be told, too: STATUS, CHECK, TEXT and FIX, a line "
        "each,\n"
        "                        separated by tabs; STATUS is ok, warning, failed or skipped\n"
        "  --json                for programs: one object a line\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if a run can start (there may be warnings), 1 if a check has failed, 2 on a wrong option.\n",
};

static void check_config(struct findings *findings, struct which_pairs *which) {
    struct config_lines lines;
    struct failure failure;
    if (supply_config_read(which->mapped_files, which->named_pipes, &lines, &failure) != SUPPLY_OK)
        finding(findings, FINDING_FAILED, "config", NULL, "%s", failure.text);
    else if (which->local_rank >= 0 && (size_t)which->local_rank >= lines.count)
        finding(findings, FINDING_FAILED, "config", NULL, "--local-rank %d: the config files have %zu lines",
                which->local_rank, lines.count);
    else {
        size_t count;
        struct mapped_file_need *needs = calloc(lines.count + 1, sizeof *needs);
        if (needs == NULL)
            finding(findings, FINDING_FAILED, "config", NULL, "out of memory");
        else {
            doctor_pairs(findings, which, &lines, needs, &count);
            doctor_memory(findings, needs, count);
        }
        free(needs);
    }
    supply_config_free(&lines);
}

int main(int argc, char **argv) {
    struct which_pairs which = WHICH_PAIRS_NOT_GIVEN;
    struct findings findings = {.stream = stdout};
    const char *others = NULL;
    for (int option; (option = command_line_next(&tool, argc, argv, &which)) != -1;) {
        switch (option) {
            case FINDINGS:
                others = optarg;
                break;
            case JSON:
                findings.json = true;
                break;
        }
    }
    command_line_config_files(&tool, &which);
    finding(&findings, FINDING_OK, "libsupply", NULL, "%s, contract %s", supply_version(), supply_contract_version());
    check_config(&findings, &which);
    if (others == NULL)
        finding(&findings, FINDING_SKIPPED, "spark", NULL, "the Spark side is looked at by launch/supply-doctor");
    else if (!findings_of_file(&findings, others))
        finding(&findings, FINDING_FAILED, "findings", NULL, "%s can not be read: %m", others);
    return command_line_end(&tool, findings.failed > 0 || findings.incomplete ? 1 : 0);
}

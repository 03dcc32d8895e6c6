/**
 * supply-feeder: sends the blocks of pairs on this node to MPI ranks on other nodes. It has one thread. Its arguments
 * come from users.
 */
#include <inttypes.h>
#include <stdio.h>

#include "command_line.h"
#include "feeder.h"
#include "api/filler.h"
#include "processes_mpi.h"
#include "files/options.h"

enum { TIMEOUT = COMMAND_LINE_OWN, GROUP };
static const struct option option_names[] = {
    COMMAND_LINE_COMMON,
    {"timeout", required_argument, NULL, TIMEOUT},
    {"group", required_argument, NULL, GROUP},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-feeder",
    .options = option_names,
    .usage =
        "Usage: mpirun -n 2 --host cpu-1:1,cpu-2:1 supply-feeder [options] : -n RANKS --host NODES PROGRAM\n"
        "Opens pairs on this node, which Spark fills, and sends their blocks to the ranks of PROGRAM, which read them "
        "with\n"
        "supply_remote_open(). The Supplier's --ranks is the larger one of the feeders' number and RANKS.\n"
        "Do not give mpirun the host file of the Supplier: its slots count pairs, and a node needs one feeder.\n"
        "\n"
        "Options:\n" COMMAND_LINE_FILES
        "  --timeout SECONDS     how long to wait for the ranks at the start and at the end\n"
        "                        (default: SUPPLY_TIMEOUT, or 120; a pair has the timeout of its rank)\n"
        "  --group NAME          group whose members may also fill the pairs (default: group= of the line, or none)\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if no pair failed, 1 if one did, 2 on a wrong option. A pair that its rank stops early has not "
        "failed.\n",
};

static void print(const char *line) { fprintf(stderr, "supply-feeder: %s\n", line); }

/* Returns the exit status. */
static int feed(const supply_options_t *options) {
    struct transport transport;
    struct processes processes = {0};
    struct failure failure;
    struct fed fed;
    double timeout;
    supply_status_t status = supply__options_timeout(options, &timeout, &failure);
    const struct wait_limit limit = {.seconds = FILLER_LIMIT_FACTOR * timeout};
    if (status == SUPPLY_OK) status = remote_mpi_meet(&transport, &processes, MPI_COMM_WORLD, true, &limit, &failure);
    if (status == SUPPLY_OK) status = supply__feed_over(&transport, &processes, options, print, &fed, &failure);
    if (status != SUPPLY_OK) {
        print(failure.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    const struct pair_range pairs = remote_own_pairs(&processes);
    fprintf(stderr, "supply-feeder: node %s sent %" PRIu64 " elements, %.3f GB, of %u pairs (from %u)\n",
            processes.list[processes.self].node, fed.elements, (double)fed.bytes / 1e9, pairs.count, pairs.first);
    transport.free(transport.context, false);
    remote_processes_free(&processes);
    return fed.failed > 0;
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    supply_options_t options;
    supply_options_init(&options);
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        if (option == TIMEOUT) options.timeout = command_line_seconds(&tool, "--timeout", optarg);
        if (option == GROUP) options.group = optarg;
    }
    if (selection.local_rank >= 0) {
        fprintf(stderr, "supply-feeder: --local-rank: a feeder opens the pairs of all ranks that it supplies\n");
        command_line_usage_error(&tool);
    }
    command_line_config_files(&tool, &selection);
    options.mapped_files = selection.mapped_files;
    options.named_pipes = selection.named_pipes;
    MPI_Init(NULL, NULL);
    const int exit_status = feed(&options);
    MPI_Finalize();
    return exit_status;
}

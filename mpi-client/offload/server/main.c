/** supply-server: ranks that hold matrices of Spark's program, and run routines on them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "command_line.h"
#include "progress.h"
#include "supply_mpi.h"
#include "supply_server.h"

enum { TIMEOUT = COMMAND_LINE_OWN, LIBRARIES };
static const struct option option_names[] = {
    COMMAND_LINE_COMMON,
    {"timeout", required_argument, NULL, TIMEOUT},
    {"libraries", required_argument, NULL, LIBRARIES},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-server",
    .options = option_names,
    .usage =
        "Usage: mpirun -n N supply-server [options]\n"
        "Holds matrices of a Spark program, and runs routines of shared libraries on them, until the program or a\n"
        "signal ends it. docs/OFFLOAD.md describes the program's side.\n"
        "\n"
        "Options:\n" COMMAND_LINE_FILES COMMAND_LINE_LINE
        "  --timeout SECONDS     timeout of each wait for rows (default: SUPPLY_TIMEOUT, or 120)\n"
        "  --libraries FOLDER    a folder whose shared libraries may be called, before those that are installed\n"
        "                        (default: SUPPLY_LIBRARIES)\n"
        "  --help, --version\n"
        "\n"
        "The commands come through a socket beside the mapped file, PATH.server, which only this user can open.\n"
        "Exit status: 0 when the program has ended it, 1 on a failure, 2 on a wrong option, 128 + N after signal N.\n",
};

static bool open_server(struct server *server) {
    double timeout = 0;
    int folder;
    char *path = socket_path(&server->options, &folder, &timeout, server->text);
    if (path != NULL) channel_open(&server->channel, folder, path, server->text, sizeof server->text);
    free(path);
    if (agreement_open(&server->agreement, &server->ranks, timeout, server->text)) return true;
    if (server->ranks.rank == 0) fprintf(stderr, "%s: %s\n", tool.name, server->text);
    return false;
}

int main(int argc, char **argv) {
    struct server server = {.channel = CHANNEL_NONE, .libraries.folder = getenv("SUPPLY_LIBRARIES")};
    struct pair_selection selection = NO_PAIR_SELECTION;
    supply_options_init(&server.options);
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        if (option == TIMEOUT) server.options.timeout = command_line_seconds(&tool, "--timeout", optarg);
        if (option == LIBRARIES) server.libraries.folder = optarg;
    }
    int threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    ranks_init(&server.ranks);
    supply_options_from_comm(&server.options, server.ranks.comm);
    server.options.mapped_files = selection.mapped_files;
    server.options.named_pipes = selection.named_pipes;
    if (selection.local_rank >= 0) server.options.local_rank = selection.local_rank;
    server.options.interrupted = interruption_came;
    server.libraries.installed = libraries_installed_folder();
    interruption_install();
    crash_install();
    const bool opened = open_server(&server);
    if (opened) server_serve(&server);
    channel_close(&server.channel);
    server_free(&server);
    if (interruption_signal() != 0) {
        /* The other ranks may be in a routine, or not be signalled at all. */
        signal(interruption_signal(), SIG_DFL);
        raise(interruption_signal());
    }
    MPI_Finalize();
    return opened ? 0 : 1;
}

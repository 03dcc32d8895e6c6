/** supply-server: ranks that hold matrices of Spark's program, and run routines on them. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "command_line.h"
#include "crash.h"
#include "doubles.h"
#include "expected_rows.h"
#include "folder.h"
#include "heartbeat.h"
#include "interruption.h"
#include "library.h"
#include "node_memory.h"
#include "options.h"
#include "receive.h"
#include "supply_mpi.h"
#include "write.h"

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
        "usage: mpirun -n N supply-server [options]\n"
        "Holds matrices of a Spark program, and runs routines of shared libraries on them, until the program or a\n"
        "signal ends it. docs/OFFLOAD.md describes the program's side.\n"
        "\n"
        "  --mapped-files FILE   mapped-files.conf (default: SUPPLY_MAPPED_FILES)\n"
        "  --named-pipes FILE    named-pipes.conf (default: SUPPLY_NAMED_PIPES)\n"
        "  --local-rank N        line of the config files, from 0 (default: from the MPI launcher)\n"
        "  --timeout SECONDS     timeout of each wait for rows (default: SUPPLY_TIMEOUT, or 120)\n"
        "  --libraries FOLDER    the folder whose shared libraries may be called (default: SUPPLY_LIBRARIES, or\n"
        "                        those that are installed with it)\n"
        "  --help, --version\n"
        "\n"
        "The commands come through a socket beside the mapped file, PATH.server, which only this user can open.\n"
        "Exit status: 0 when the program has ended it, 1 on a failure, 2 on a wrong option, 128 + N after signal N.\n",
};

struct server {
    struct ranks ranks;
    struct channel channel;
    supply_options_t options;
    struct matrices matrices;
    struct libraries libraries;
    struct reception reception;
    struct progress progress; /**< of the command that is being carried out */
    char last_id[64];         /**< of the command that was answered last, */
    json_t *last_answer;      /**< and its answer */
    bool ended;
    char text[FAILURE_TEXT_BYTES];
};

__attribute__((format(printf, 2, 3))) static json_t *fail(struct server *server, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(server->text, sizeof server->text, format, arguments);
    va_end(arguments);
    return NULL;
}

static bool is_interrupted(void *unused) {
    (void)unused;
    return interruption_signal() != 0;
}

static uint64_t number_in(const json_t *command, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(command, name));
}

/* Opens the pair, and answers before the rows come: Spark's task that asks must not keep a slot from those that supply.
 */
static json_t *receive(struct server *server, const json_t *command) {
    struct reception *reception = &server->reception;
    const char *numbers = json_string_value(json_object_get(command, "numbers"));
    *reception = (struct reception){.handle = number_in(command, "handle"),
                                    .columns = number_in(command, "columns"),
                                    .numbers = numbers == NULL ? '\0' : numbers[0]};
    supply_options_t options = server->options;
    server->text[0] = '\0';
    check_expected_rows(&server->ranks, number_in(command, "expected_rows"), number_in(command, "row_bytes"),
                        server->text);
    if (reception->columns == 0 && doubles_number_bytes(reception->numbers) == 0)
        fail(server, "the command does not say which numbers the rows have");
    else if (server->text[0] == '\0' && supply_open(&reception->supply, &options) != SUPPLY_OK)
        fail(server, "%s", supply_error(reception->supply));
    /* No rank waits for rows, or for the others, if one of them cannot take its own. */
    if (ranks_agree(&server->ranks, server->text)) return json_object();
    supply_abort(reception->supply, server->text);
    *reception = (struct reception){0};
    return NULL;
}

/* After the rows of "receive" have come: all ranks compare them. */
static json_t *received(struct server *server, const json_t *command) {
    const uint64_t handle = number_in(command, "handle");
    if (server->reception.handle != handle || handle == 0) return fail(server, "there is no matrix %" PRIu64, handle);
    struct held *held = reception_finish(&server->reception, &server->ranks, &server->progress, server->text);
    if (held == NULL) return NULL;
    matrices_add(&server->matrices, held);
    return held_describe(held);
}

static json_t *describe_results(struct server *server, struct supply_call *call) {
    json_t *results = json_array();
    for (size_t i = 0; i < SUPPLY_ROUTINE_RESULTS_MAX && call->routine->results[i] != NULL; i++) {
        json_t *result = held_describe(call->results[i]);
        json_object_set_new(result, "name", json_string(call->routine->results[i]));
        json_array_append_new(results, result);
        matrices_add(&server->matrices, call->results[i]);
        call->results[i] = NULL;
    }
    return json_pack("{s:o}", "results", results);
}

static json_t *run_call(struct server *server, struct supply_call *call) {
    char about[512];
    snprintf(about, sizeof about, "rank %d on node %s was ended in the routine %s by signal", server->ranks.rank,
             server->ranks.node, call->routine->name);
    crash_report_to(server->channel.connection, about);
    const bool succeeded = call_run(call);
    crash_report_to(-1, NULL);
    return succeeded ? describe_results(server, call) : fail(server, "%s", call->text);
}

static json_t *call_routine(struct server *server, const json_t *command) {
    const char *library = json_string_value(json_object_get(command, "library"));
    const char *routine = json_string_value(json_object_get(command, "routine"));
    struct supply_call *call = calloc(1, sizeof *call);
    if (call == NULL || library == NULL || routine == NULL) {
        free(call);
        return fail(server, "a call names a library and a routine");
    }
    call->ranks = &server->ranks;
    call->progress = &server->progress;
    call->first_handle = number_in(command, "handle");
    call->routine = libraries_find(&server->libraries, library, routine, call->text, sizeof call->text);
    if (call->routine != NULL) call_prepare(call, &server->matrices, command);
    /* No rank enters the routine if another one cannot. */
    json_t *answer = ranks_agree(&server->ranks, call->text) ? run_call(server, call) : fail(server, "%s", call->text);
    call_free(call);
    free(call);
    return answer;
}

static json_t *fetch(struct server *server, const json_t *command) {
    const struct held *held = matrices_find(&server->matrices, number_in(command, "handle"));
    if (held == NULL)
        return fail(server, "there is no matrix %" PRIu64 ": it was dropped", number_in(command, "handle"));
    if (held->part.row_offsets != NULL) return fail(server, "a sparse matrix cannot be fetched: multiply it first");
    /* All ranks have the same array: the first one sends it. */
    const bool is_sent = !held->is_array || server->ranks.rank == 0;
    const uint64_t bytes = is_sent ? held->part.local_rows * held->part.columns * sizeof(double) : 0;
    return json_pack("{s:I}", "bytes", (json_int_t)bytes);
}

static json_t *write_result(struct server *server, const json_t *command) {
    const struct held *held = matrices_find(&server->matrices, number_in(command, "handle"));
    const char *folder = json_string_value(json_object_get(command, "folder"));
    supply_options_t options = server->options;
    options.results_folder = folder;
    server->text[0] = '\0';
    if (held == NULL)
        fail(server, "there is no matrix %" PRIu64 ": it was dropped", number_in(command, "handle"));
    else if (held->part.row_offsets != NULL)
        fail(server, "a sparse matrix cannot be written: multiply it first");
    else if (folder == NULL)
        fail(server, "the command names no folder");
    else
        write_matrix(held, &server->ranks, &options, "matrix", server->text);
    if (ranks_agree(&server->ranks, server->text)) return json_object();
    if (folder != NULL) remove_written(&options);
    return NULL;
}

static json_t *drop(struct server *server, const json_t *command) {
    matrices_drop(&server->matrices, number_in(command, "handle"));
    return json_object();
}

/* The handles that the program has forgotten since its last command. */
static void drop_forgotten(struct server *server, const json_t *command) {
    size_t i;
    const json_t *handle;
    json_array_foreach(json_object_get(command, "drop"), i, handle)
        matrices_drop(&server->matrices, (uint64_t)json_integer_value(handle));
}

static json_t *end(struct server *server, const json_t *command) {
    (void)command;
    server->ended = true;
    return json_object();
}

static json_t *status(struct server *server, const json_t *command) {
    (void)command;
    return json_pack("{s:i, s:i, s:s, s:I, s:s}", "rank", server->ranks.rank, "ranks", server->ranks.count, "node",
                     server->ranks.node, "memory_available", (json_int_t)node_memory_available(""), "version",
                     supply_version());
}

static const struct {
    const char *name;
    json_t *(*run)(struct server *, const json_t *);
} commands[] = {{"status", status}, {"receive", receive},    {"received", received}, {"call", call_routine},
                {"fetch", fetch},   {"write", write_result}, {"drop", drop},         {"end", end}};

static json_t *run(struct server *server, const char *name, const json_t *command) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0) return commands[i].run(server, command);
    return fail(server, "there is no command '%s' in supply-server %s: use the same version on both sides", name,
                supply_version());
}

/* JSON has no place for a text that is not UTF-8, such as one that was cut: its other characters remain. */
static json_t *error_answer(char *text) {
    json_t *valid = json_string(text);
    if (valid == NULL) {
        for (char *one = text; *one != '\0'; one++)
            if ((unsigned char)*one > 0x7F) *one = '?';
        valid = json_string(text);
    }
    return json_pack("{s:o}", "error", valid);
}

/* A command that comes again, from a task that Spark retries, gets its first answer. */
static json_t *answer(struct server *server, const json_t *command) {
    const char *name = json_string_value(json_object_get(command, "command"));
    const char *id = json_string_value(json_object_get(command, "id"));
    if (name == NULL || id == NULL || strlen(id) >= sizeof server->last_id)
        return json_pack("{s:s}", "error", "a command has a name and an id");
    if (server->last_answer != NULL && strcmp(id, server->last_id) == 0) return json_incref(server->last_answer);
    drop_forgotten(server, command);
    /* Its run has failed in Spark. */
    if (strcmp(name, "received") != 0) reception_drop(&server->reception);
    json_t *done = run(server, name, command);
    json_decref(server->last_answer);
    server->last_answer = done != NULL ? json_pack("{s:o}", "done", done) : error_answer(server->text);
    memcpy(server->last_id, id, strlen(id) + 1);
    return json_incref(server->last_answer);
}

/* A command may take long: to open the pair, to compare keys, to run a routine, to write. */
static json_t *answer_with_heartbeats(struct server *server, const json_t *command) {
    struct heartbeat heartbeat;
    server->progress = (struct progress){0};
    heartbeat_start(&heartbeat, &server->progress, &server->channel);
    json_t *line = answer(server, command);
    heartbeat_stop(&heartbeat);
    return line;
}

static void send_answer(struct server *server, const json_t *command) {
    json_t *line = answer_with_heartbeats(server, command);
    const json_t *bytes = json_object_get(json_object_get(line, "done"), "bytes");
    const struct held *held = bytes == NULL ? NULL : matrices_find(&server->matrices, number_in(command, "handle"));
    channel_send(&server->channel, line, held == NULL ? "" : (const void *)held->part.values,
                 held == NULL ? 0 : (size_t)json_integer_value(bytes));
    channel_end_answer(&server->channel);
}

static void serve(struct server *server) {
    while (!server->ended) {
        json_t *command = channel_next(&server->channel);
        if (command == NULL) return;
        send_answer(server, command);
        json_decref(command);
        if (server->reception.supply != NULL) reception_take_rows(&server->reception, &server->ranks);
    }
}

/* The path of the socket, in the folder of the pair, which is made and checked as a pair's. NULL: text says why. */
static char *socket_path(const supply_options_t *options, char *text) {
    struct settings settings;
    struct failure failure = {.text = "no memory"};
    char *path = NULL;
    int folder = -1;
    if (supply_settings_files(options, &settings, &failure) != SUPPLY_OK ||
        supply_folder_prepare(&folder, "socket", &settings.files.mapped_file, NO_GROUP, &failure) != SUPPLY_OK ||
        asprintf(&path, "%s.server", settings.files.mapped_file.path) < 0) {
        snprintf(text, FAILURE_TEXT_BYTES, "%s", failure.text);
        path = NULL;
    }
    if (folder >= 0) close(folder);
    supply_settings_free(&settings);
    return path;
}

static bool open_server(struct server *server) {
    char *path = socket_path(&server->options, server->text);
    if (path != NULL) channel_open(&server->channel, path, server->text, sizeof server->text);
    free(path);
    if (ranks_agree(&server->ranks, server->text)) return true;
    if (server->ranks.rank == 0) fprintf(stderr, "%s: %s\n", tool.name, server->text);
    return false;
}

int main(int argc, char **argv) {
    int threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    struct server server = {.channel = CHANNEL_NONE, .libraries.folder = getenv("SUPPLY_LIBRARIES")};
    struct pair_selection selection = NO_PAIR_SELECTION;
    supply_options_init(&server.options);
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        if (option == TIMEOUT) server.options.timeout = command_line_seconds(&tool, "--timeout", optarg);
        if (option == LIBRARIES) server.libraries.folder = optarg;
    }
    ranks_init(&server.ranks);
    supply_options_from_comm(&server.options, server.ranks.comm);
    server.options.mapped_files = selection.mapped_files;
    server.options.named_pipes = selection.named_pipes;
    if (selection.local_rank >= 0) server.options.local_rank = selection.local_rank;
    server.options.interrupted = is_interrupted;
    if (server.libraries.folder == NULL) server.libraries.folder = libraries_default_folder();
    interruption_install();
    crash_install();
    const bool opened = open_server(&server);
    if (opened) serve(&server);
    channel_close(&server.channel);
    reception_drop(&server.reception);
    matrices_drop_all(&server.matrices);
    json_decref(server.last_answer);
    if (interruption_signal() != 0) {
        /* The other ranks may be in a routine, or not be signalled at all. */
        signal(interruption_signal(), SIG_DFL);
        raise(interruption_signal());
    }
    MPI_Finalize();
    return opened ? 0 : 1;
}

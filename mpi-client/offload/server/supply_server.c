/**
 * The commands of Spark, one after the other in the main thread: each is begun on all ranks or on none (ranks.h),
 * carried out, and answered once; a repeated id gets the same answer again.
 */
#include "supply_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "doubles.h"
#include "files/folder.h"
#include "files/options.h"
#include "json_text.h"
#include "matrices.h"
#include "memory.h"
#include "progress.h"
#include "ranks.h"

char *socket_path(const supply_options_t *options, int *folder, double *timeout, char *text) {
    struct settings settings;
    struct failure failure = {.text = "no memory"};
    char *path = NULL;
    *folder = -1;
    if (supply__settings(options, &settings, &failure) != SUPPLY_OK ||
        supply__folder_prepare(folder, "socket", &settings.files.mapped_file, NO_GROUP, &failure) != SUPPLY_OK ||
        asprintf(&path, "%s.server", settings.files.mapped_file.path) < 0) {
        snprintf(text, SUPPLY_TEXT_BYTES, "%s", failure.text);
        path = NULL;
    }
    *timeout = settings.timeout;
    if (path == NULL && *folder >= 0) close(*folder);
    supply__settings_free(&settings);
    return path;
}

__attribute__((format(printf, 2, 3))) static json_t *server_fail(struct server *server, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(server->text, sizeof server->text, format, arguments);
    va_end(arguments);
    return NULL;
}

static uint64_t number_in(const json_t *command, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(command, name));
}

/* Opens the pair, and answers before the rows come: Spark's task that asks must not keep a slot from those that supply.
 */
static json_t *server_receive(struct server *server, const json_t *command) {
    struct reception *reception = &server->reception;
    const char *numbers = json_string_value(json_object_get(command, "numbers"));
    *reception = (struct reception){.handle = number_in(command, "handle"),
                                    .columns = number_in(command, "columns"),
                                    .numbers = numbers == NULL ? '\0' : numbers[0]};
    supply_options_t options = server->options;
    server->text[0] = '\0';
    /* 0 if Spark does not know the number of rows, which come in equal parts. A double does not overflow. */
    const double expected_bytes =
        (double)number_in(command, "expected_rows") / server->ranks.count * (double)number_in(command, "row_bytes");
    check_needed_memory(&server->ranks, expected_bytes, "the matrix", server->text);
    if (reception->columns == 0 && doubles_number_bytes(reception->numbers) == 0)
        server_fail(server, "the command does not say which numbers the rows have");
    else if (server->text[0] == '\0' && supply_open(&reception->supply, &options) != SUPPLY_OK)
        server_fail(server, "%s", supply_error(reception->supply));
    /* No rank waits for rows, or for the others, if one of them cannot take its own. */
    if (ranks_agree(&server->ranks, server->text)) return json_object();
    supply_abort(reception->supply, server->text);
    *reception = (struct reception){0};
    return NULL;
}

/* After the rows of "receive" have come: all ranks compare them. */
static json_t *received(struct server *server, const json_t *command) {
    const uint64_t handle = number_in(command, "handle");
    struct reception *reception = &server->reception;
    /* Other ranks may have it: they learn that this one does not. */
    if (reception->handle != handle || handle == 0)
        snprintf(reception->text, sizeof reception->text, "there are no rows for a matrix %" PRIu64, handle);
    struct held *held = reception_finish(reception, &server->ranks, &server->progress, server->text);
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
    snprintf(about, sizeof about, "rank %d on node %s was ended in the routine %s by", server->ranks.rank,
             server->ranks.node, call->routine->name);
    crash_report_to(server->channel.connection, about);
    const bool succeeded = call_run(call);
    crash_report_to(-1, NULL);
    return succeeded ? describe_results(server, call) : server_fail(server, "%s", call->text);
}

static json_t *call_routine(struct server *server, const json_t *command) {
    const char *library = json_string_value(json_object_get(command, "library"));
    const char *routine = json_string_value(json_object_get(command, "routine"));
    if (library == NULL || routine == NULL) return server_fail(server, "a call names a library and a routine");
    struct supply_call call = {
        .ranks = &server->ranks, .progress = &server->progress, .first_handle = number_in(command, "handle")};
    call.routine = libraries_find(&server->libraries, library, routine, call.text);
    if (call.routine != NULL) call_prepare(&call, &server->matrices, command);
    /* No rank enters the routine if another one cannot. */
    json_t *answer =
        ranks_agree(&server->ranks, call.text) ? run_call(server, &call) : server_fail(server, "%s", call.text);
    call_free(&call);
    return answer;
}

/* The dense matrix of the command. NULL and server->text: there is none. `done` says what the command does with it. */
static const struct held *find_dense(struct server *server, const json_t *command, const char *done) {
    const uint64_t handle = number_in(command, "handle");
    const struct held *held = matrices_find(&server->matrices, handle);
    if (held == NULL)
        server_fail(server, "there is no matrix %" PRIu64 ": it was dropped", handle);
    else if (held->part.row_offsets != NULL)
        server_fail(server, "a sparse matrix cannot be %s: multiply it first", done);
    else
        return held;
    return NULL;
}

static json_t *fetch(struct server *server, const json_t *command) {
    const struct held *held = find_dense(server, command, "fetched");
    if (held == NULL) return NULL;
    /* All ranks have the same array: the first one sends it. */
    const bool is_sent = !held->is_array || server->ranks.rank == 0;
    const uint64_t bytes = is_sent ? held->part.local_rows * held->part.columns * sizeof(double) : 0;
    return json_pack("{s:I, s:I}", "bytes", (json_int_t)bytes, "handle", (json_int_t)held->handle);
}

static json_t *server_write_result(struct server *server, const json_t *command) {
    const char *folder = json_string_value(json_object_get(command, "folder"));
    supply_options_t options = server->options;
    options.results_folder = folder;
    server->text[0] = '\0';
    const struct held *held = find_dense(server, command, "written");
    if (held != NULL && folder == NULL)
        server_fail(server, "the command names no folder");
    else if (held != NULL)
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

static void server_drop_all(struct server *server) {
    reception_drop(&server->reception);
    matrices_drop_all(&server->matrices);
}

/* The matrices of the program before are gone. */
static json_t *attach(struct server *server, const json_t *command) {
    program_attach(&server->program, command);
    server_drop_all(server);
    return status(server, command);
}

static json_t *detach(struct server *server, const json_t *command) {
    (void)command;
    server->program = (struct program){.id = ""};
    server_drop_all(server);
    return json_object();
}

/* is_collective: all ranks begin it, or none. */
static const struct command {
    const char *name;
    json_t *(*run)(struct server *, const json_t *);
    bool is_collective;
    bool is_of_any_program;
} commands[] = {{"status", status, false, true},     {"attach", attach, true, true},
                {"detach", detach, true, false},     {"receive", server_receive, true, false},
                {"received", received, true, false}, {"call", call_routine, true, false},
                {"fetch", fetch, false, false},      {"write", server_write_result, true, false},
                {"drop", drop, false, false},        {"end", end, true, false}};

static const struct command *find_command(struct server *server, const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    server_fail(server, "there is no command '%s' in supply-server %s: use the same version on both sides", name,
                supply_version());
    return NULL;
}

/* A text that was cut may not be UTF-8. */
static json_t *error_answer(const char *text) { return json_pack("{s:o}", "error", json_text(text)); }

static json_t *server_run(struct server *server, const char *name, const char *id, const json_t *command) {
    const struct command *known = find_command(server, name);
    if (known == NULL) return error_answer(server->text);
    /* Refused before the ranks agree, so that no rank waits here while the attached program sends a command. */
    if (known->run == attach && !program_may_attach(&server->program, command, server->text))
        return error_answer(server->text);
    if (!known->is_of_any_program && !program_sends(&server->program, command, server->text)) {
        json_t *ended = error_answer(server->text);
        json_object_set_new(ended, "ended", json_true());
        return ended;
    }
    if (known->is_collective && !agreement_reach(&server->agreement, id, &server->channel, server->text))
        return error_answer(server->text);
    if (!known->is_of_any_program) drop_forgotten(server, command);
    /* What was being received is of a run that has failed in Spark. */
    if (!known->is_of_any_program && known->run != received) reception_drop(&server->reception);
    json_t *done = known->run(server, command);
    return done != NULL ? json_pack("{s:o}", "done", done) : error_answer(server->text);
}

/* A command that comes again, from a task that Spark retries, gets its first answer. */
static json_t *answer(struct server *server, const json_t *command) {
    const char *name = json_string_value(json_object_get(command, "command"));
    const char *id = json_string_value(json_object_get(command, "id"));
    if (name == NULL || id == NULL || id[0] == '\0' || strlen(id) >= sizeof server->last_id)
        return json_pack("{s:s}", "error", "a command has a name and an id");
    if (server->last_answer != NULL && strcmp(id, server->last_id) == 0) return json_incref(server->last_answer);
    json_t *first_answer = server_run(server, name, id, command);
    json_decref(server->last_answer);
    server->last_answer = first_answer;
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
    const json_t *done = json_object_get(line, "done"), *bytes = json_object_get(done, "bytes");
    const struct held *held = bytes == NULL ? NULL : matrices_find(&server->matrices, number_in(done, "handle"));
    channel_send(&server->channel, line, held == NULL ? "" : (const void *)held->part.values,
                 held == NULL ? 0 : (size_t)json_integer_value(bytes));
    channel_end_answer(&server->channel);
}

static void attend(void *agreement) { agreement_attend(agreement); }

void server_serve(struct server *server) {
    const bool decides = server->ranks.rank == 0 && server->ranks.count > 1;
    while (!server->ended) {
        json_t *command = channel_next(&server->channel, decides ? attend : NULL, &server->agreement);
        if (command == NULL) return;
        send_answer(server, command);
        json_decref(command);
        if (server->reception.supply != NULL) reception_take_rows(&server->reception, &server->ranks);
    }
}

void server_free(struct server *server) {
    server_drop_all(server);
    agreement_close(&server->agreement);
    json_decref(server->last_answer);
    free(server->libraries.installed);
}

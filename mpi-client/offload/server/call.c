/**
 * One call of a routine: reads its parameters from a command of Spark, checks them against what the routine declares,
 * runs it in the main thread, and serves the functions of supply_routine.h meanwhile.
 */
#include "call.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "memory.h"
#include "ranks.h"
#include "supply.h"

static const char *type_name(supply_parameter_type_t type) {
    static const char *const names[] = {"nothing", "a matrix", "an integer", "a number", "a text"};
    return names[type];
}

static size_t count_parameters(const supply_routine_t *routine) {
    size_t count = 0;
    while (count < SUPPLY_ROUTINE_PARAMETERS_MAX && routine->parameters[count].name != NULL) count++;
    return count;
}

static bool has_parameter(const supply_routine_t *routine, const char *name) {
    for (size_t i = 0; i < count_parameters(routine); i++)
        if (strcmp(routine->parameters[i].name, name) == 0) return true;
    return false;
}

static bool call_check_names(struct supply_call *call, const json_t *parameters) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)parameters, name, value) {
        if (has_parameter(call->routine, name)) continue;
        size_t used = (size_t)snprintf(call->text, sizeof call->text,
                                       "the routine %s has no parameter '%s'; it has:", call->routine->name, name);
        for (size_t i = 0; i < count_parameters(call->routine) && used < sizeof call->text; i++)
            used +=
                (size_t)snprintf(call->text + used, sizeof call->text - used, " %s", call->routine->parameters[i].name);
        return false;
    }
    return true;
}

static bool read_default(const supply_parameter_t *parameter, union value *value) {
    if (parameter->default_value == NULL) return false;
    if (parameter->type == SUPPLY_INTEGER) value->integer = strtoll(parameter->default_value, NULL, 10);
    if (parameter->type == SUPPLY_NUMBER) supply__number_read(parameter->default_value, &value->number);
    if (parameter->type == SUPPLY_TEXT) value->text = parameter->default_value;
    return parameter->type != SUPPLY_MATRIX;
}

static bool read_value(struct supply_call *call, const struct matrices *matrices, const supply_parameter_t *parameter,
                       const json_t *given, union value *value) {
    const json_t *handle = json_object_get(given, "matrix");
    switch (parameter->type) {
        case SUPPLY_NO_PARAMETER:
            break;
        case SUPPLY_MATRIX:
            if (!json_is_integer(handle)) break;
            value->matrix = matrices_find(matrices, (uint64_t)json_integer_value(handle));
            if (value->matrix != NULL) return true;
            return refuse(call->text,
                          "parameter '%s': there is no matrix %lld: it was dropped, or another "
                          "server has it",
                          parameter->name, json_integer_value(handle));
        case SUPPLY_INTEGER:
            value->integer = json_integer_value(given);
            if (json_is_integer(given)) return true;
            break;
        case SUPPLY_NUMBER:
            value->number = json_number_value(given);
            if (json_is_number(given)) return true;
            break;
        case SUPPLY_TEXT:
            value->text = json_string_value(given);
            if (json_is_string(given)) return true;
            break;
    }
    char *text = json_dumps(given, JSON_ENCODE_ANY);
    snprintf(call->text, sizeof call->text, "parameter '%s' of the routine %s is %s, not %s", parameter->name,
             call->routine->name, type_name(parameter->type), text == NULL ? "that" : text);
    free(text);
    return false;
}

bool call_prepare(struct supply_call *call, const struct matrices *matrices, const json_t *command) {
    const json_t *arguments = json_object_get(command, "arguments");
    const json_t *named = json_object_get(command, "parameters");
    const size_t count = count_parameters(call->routine);
    if (!call_check_names(call, named)) return false;
    if (json_array_size(arguments) > count) {
        return refuse(call->text, "the routine %s has %zu parameters, not %zu", call->routine->name, count,
                      json_array_size(arguments));
    }
    for (size_t i = 0; i < count; i++) {
        const supply_parameter_t *parameter = &call->routine->parameters[i];
        const json_t *argument = json_array_get(arguments, i), *of_name = json_object_get(named, parameter->name);
        if (argument != NULL && of_name != NULL) {
            return refuse(call->text, "the parameter '%s' of the routine %s is given twice", parameter->name,
                          call->routine->name);
        }
        const json_t *value = argument != NULL ? argument : of_name;
        if (value != NULL) {
            if (!read_value(call, matrices, parameter, value, &call->values[i])) return false;
        } else if (!read_default(parameter, &call->values[i])) {
            return refuse(call->text, "the routine %s needs the parameter '%s', %s", call->routine->name,
                          parameter->name, type_name(parameter->type));
        }
    }
    return true;
}

/* A routine asks for what it has declared, so another name is its programmer's mistake. */
static _Noreturn void refuse_name(const supply_call_t *call, const char *what, const char *name) {
    fprintf(stderr, "supply-server: the routine %s has not declared the %s '%s'\n", call->routine->name, what, name);
    abort();
}

static const union value *value_of(const supply_call_t *call, const char *name, supply_parameter_type_t type) {
    for (size_t i = 0; i < SUPPLY_ROUTINE_PARAMETERS_MAX && call->routine->parameters[i].name != NULL; i++)
        if (strcmp(call->routine->parameters[i].name, name) == 0 && call->routine->parameters[i].type == type)
            return &call->values[i];
    refuse_name(call, "parameter", name);
}

static size_t number_of_result(const supply_call_t *call, const char *name) {
    for (size_t i = 0; i < SUPPLY_ROUTINE_RESULTS_MAX && call->routine->results[i] != NULL; i++)
        if (strcmp(call->routine->results[i], name) == 0) return i;
    refuse_name(call, "result", name);
}

MPI_Comm supply_call_comm(const supply_call_t *call) { return call->comm; }

const supply_matrix_t *supply_call_matrix(const supply_call_t *call, const char *name) {
    return &value_of(call, name, SUPPLY_MATRIX)->matrix->part;
}

int64_t supply_call_integer(const supply_call_t *call, const char *name) {
    return value_of(call, name, SUPPLY_INTEGER)->integer;
}

double supply_call_number(const supply_call_t *call, const char *name) {
    return value_of(call, name, SUPPLY_NUMBER)->number;
}

const char *supply_call_text(const supply_call_t *call, const char *name) {
    return value_of(call, name, SUPPLY_TEXT)->text;
}

/* The keys of the parameter that has these rows. */
static struct keys *call_keys_like(const supply_call_t *call, const supply_matrix_t *like) {
    for (size_t i = 0; i < SUPPLY_ROUTINE_PARAMETERS_MAX && call->routine->parameters[i].name != NULL; i++)
        if (call->routine->parameters[i].type == SUPPLY_MATRIX && &call->values[i].matrix->part == like)
            return call->values[i].matrix->keys;
    for (size_t i = 0; i < SUPPLY_ROUTINE_RESULTS_MAX; i++)
        if (call->results[i] != NULL && &call->results[i]->part == like) return call->results[i]->keys;
    return NULL;
}

static bool add_values(struct held *held, uint64_t rows, uint64_t columns) {
    size_t bytes;
    if (held == NULL || __builtin_mul_overflow(rows, columns, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(double), &bytes))
        return false;
    held->part.columns = columns;
    /* A rank without rows has an address, too. */
    held->part.values = growing_add(&held->values, bytes > 0 ? bytes : sizeof(double));
    return held->part.values != NULL;
}

/* Collective: nodes differ in their memory, and no rank may continue alone. */
static struct held *make_result(supply_call_t *call, const char *name, uint64_t rows, uint64_t columns) {
    char text[SUPPLY_TEXT_BYTES] = "";
    const size_t number = number_of_result(call, name);
    if (call->results[number] != NULL) {
        supply_call_fail(call, "the routine %s makes its result '%s' twice", call->routine->name, name);
        return NULL;
    }
    struct held *held = held_new(call->first_handle + number);
    if (!add_values(held, rows, columns))
        snprintf(text, sizeof text, "a result of the routine %s needs %.1f GB on node %s, and %.1f GB are free there",
                 call->routine->name, (double)rows * (double)columns * sizeof(double) / 1e9, call->ranks->node,
                 (double)node_memory_available("") / 1e9);
    if (ranks_agree(call->ranks, text)) return call->results[number] = held;
    supply_call_fail(call, "%s", text);
    held_free(held);
    return NULL;
}

supply_matrix_t *supply_call_rows(supply_call_t *call, const char *result, const supply_matrix_t *like,
                                  uint64_t columns) {
    struct held *held = make_result(call, result, like->local_rows, columns);
    if (held == NULL) return NULL;
    held->part.rows = like->rows;
    held->part.first_row = like->first_row;
    held->part.local_rows = like->local_rows;
    held->keys = keys_share(call_keys_like(call, like));
    return &held->part;
}

double *supply_call_array(supply_call_t *call, const char *result, uint64_t rows, uint64_t columns) {
    struct held *held = make_result(call, result, rows, columns);
    if (held == NULL) return NULL;
    held->is_array = true;
    held->part.rows = held->part.local_rows = rows;
    return held->part.values;
}

int supply_call_check_memory(supply_call_t *call, uint64_t bytes) {
    char what[SUPPLY_TEXT_BYTES / 2], text[SUPPLY_TEXT_BYTES] = "";
    snprintf(what, sizeof what, "the routine %s", call->routine->name);
    check_needed_memory(call->ranks, (double)bytes, what, text);
    return ranks_agree(call->ranks, text) ? 0 : supply_call_fail(call, "%s", text);
}

void supply_call_progress(supply_call_t *call, uint64_t step, uint64_t of) { progress_set(call->progress, step, of); }

bool supply_call_cancelled(supply_call_t *call) {
    int cancelled = atomic_load(&call->progress->is_cancelled);
    MPI_Allreduce(MPI_IN_PLACE, &cancelled, 1, MPI_INT, MPI_MAX, call->ranks->comm);
    return cancelled != 0;
}

int supply_call_fail(supply_call_t *call, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->text, sizeof call->text, format, arguments);
    va_end(arguments);
    return 1;
}

static void check_results(struct supply_call *call) {
    for (size_t i = 0; i < SUPPLY_ROUTINE_RESULTS_MAX && call->routine->results[i] != NULL; i++)
        if (call->results[i] == NULL)
            snprintf(call->text, sizeof call->text, "the routine %s has not made its result '%s'", call->routine->name,
                     call->routine->results[i]);
}

bool call_run(struct supply_call *call) {
    MPI_Comm_dup(call->ranks->comm, &call->comm);
    const int status = call->routine->run(call);
    if (status == 0) {
        call->text[0] = '\0';
        check_results(call);
    }
    bool succeeded = ranks_agree(call->ranks, call->text);
    /* A rank without a text may fail because another one does, which has it. */
    if (succeeded && status != 0)
        snprintf(call->text, sizeof call->text, "the routine %s failed with %d and no text", call->routine->name,
                 status);
    if (succeeded) succeeded = ranks_agree(call->ranks, call->text);
    MPI_Comm_free(&call->comm);
    return succeeded;
}

void call_free(struct supply_call *call) {
    for (size_t i = 0; i < SUPPLY_ROUTINE_RESULTS_MAX; i++) held_free(call->results[i]);
}

/*
 * Loads libraries of routines, from the user's folder and the installed one only, and finds routines in them. A library
 * stays loaded; its code and its declarations are trusted as this program's own.
 */

char *libraries_installed_folder(void) {
    char *program = realpath("/proc/self/exe", NULL), *installed = NULL;
    char *name = program == NULL ? NULL : strrchr(program, '/');
    if (name == NULL) return program;
    *name = '\0';
    if (asprintf(&installed, "%s/%s", program, SUPPLY_LIBRARIES_FROM_BIN) < 0) installed = NULL;
    if (installed == NULL || access(installed, R_OK) != 0) {
        free(installed);
        return program;
    }
    free(program);
    return installed;
}

/* The path of the library in the named folder, else in the installed one. NULL: no memory. */
static char *library_path_of(const struct libraries *libraries, const char *name) {
    char *path = NULL;
    const char *const folders[] = {libraries->folder, libraries->installed};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (folders[i] == NULL) continue;
        free(path);
        if (asprintf(&path, "%s/%s", folders[i], name) < 0) return NULL;
        if (access(path, R_OK) == 0) break;
    }
    return path;
}

/* Another layout of the table needs another number in its name (supply_routine.h). */
_Static_assert(sizeof(supply_routine_t) == 464, "supply_routines_1 has entries of 464 bytes");
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

/* NULL: text says why. */
static const supply_routine_t *open_library(const char *path, const char *name, char *text) {
    /* Not RTLD_DEEPBIND: the library must get the malloc() that a preloaded tool or the program itself has. */
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL) {
        snprintf(text, SUPPLY_TEXT_BYTES, "cannot load the library %s (--libraries): %s", name, dlerror());
        return NULL;
    }
    const supply_routine_t *routines = dlsym(loaded, TEXT(supply_routines));
    if (routines != NULL) return routines;
    snprintf(text, SUPPLY_TEXT_BYTES,
             "the library %s (--libraries) does not export " TEXT(
                 supply_routines) ": compile it again with "
                                  "supply_routine.h of this version (%s), and define supply_routines there",
             name, supply_version());
    dlclose(loaded);
    return NULL;
}

static struct library *load(struct libraries *libraries, const char *name, char *text) {
    if (name[0] == '\0' || strchr(name, '/') != NULL) {
        snprintf(text, SUPPLY_TEXT_BYTES,
                 "'%s' is no file name of a library: supply-server loads libraries from its folders only (--libraries)",
                 name);
        return NULL;
    }
    char *path = library_path_of(libraries, name);
    if (path == NULL) {
        snprintf(text, SUPPLY_TEXT_BYTES, "no memory for a library");
        return NULL;
    }
    for (struct library *library = libraries->first; library != NULL; library = library->next)
        if (strcmp(library->path, path) == 0) {
            free(path);
            return library;
        }
    struct library *library = malloc(sizeof *library);
    const supply_routine_t *routines = NULL;
    if (library == NULL)
        snprintf(text, SUPPLY_TEXT_BYTES, "no memory for a library");
    else
        routines = open_library(path, name, text);
    if (routines == NULL) {
        free(library);
        free(path);
        return NULL;
    }
    *library = (struct library){path, routines, libraries->first};
    return libraries->first = library;
}

static void name_all(const supply_routine_t *routine, char *text) {
    for (size_t used = strlen(text); routine->name != NULL && used < SUPPLY_TEXT_BYTES; routine++)
        used += (size_t)snprintf(text + used, SUPPLY_TEXT_BYTES - used, " %s", routine->name);
}

const supply_routine_t *libraries_find(struct libraries *libraries, const char *library, const char *routine,
                                       char *text) {
    const struct library *found = load(libraries, library, text);
    if (found == NULL) return NULL;
    for (const supply_routine_t *one = found->routines; one->name != NULL; one++)
        if (strcmp(one->name, routine) == 0) return one;
    snprintf(text, SUPPLY_TEXT_BYTES, "the library %s has no routine '%s'; it has:", library, routine);
    name_all(found->routines, text);
    return NULL;
}

/** One call of a routine: its parameters, its results, and what the routine may ask. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "matrices.h"
#include "progress.h"
#include "ranks.h"
#include "supply_routine.h"

/** The value of a parameter. */
union value {
    const struct held *matrix;
    int64_t integer;
    double number;
    const char *text;
};

struct supply_call {
    const supply_routine_t *routine;
    const struct ranks *ranks;
    MPI_Comm comm; /**< of this call alone: a message that it leaves reaches no other one */
    struct progress *progress;
    union value values[SUPPLY_ROUTINE_PARAMETERS_MAX];
    struct held *results[SUPPLY_ROUTINE_RESULTS_MAX];
    uint64_t first_handle; /**< of the results, in their order */
    char text[SUPPLY_TEXT_BYTES];
};

/**
 * Reads the parameters of a command: "arguments" [{"matrix": HANDLE}, …], in the order of the routine's parameters, and
 * "parameters" {"k": 20, …} by name. False: call->text says why. The call uses the texts of the command.
 */
bool call_prepare(struct supply_call *call, const struct matrices *matrices, const json_t *command);

/** Runs the routine. False: call->text says why. Collective. */
bool call_run(struct supply_call *call);

/** Frees the results that nobody has taken. */
void call_free(struct supply_call *call);

/* The shared libraries whose routines may be called. */

struct library {
    char *path;
    const supply_routine_t *routines;
    struct library *next;
};

/** Libraries are loaded from these folders only. folder: the one that the user has named, or NULL. It comes first. */
struct libraries {
    const char *folder;
    char *installed;
    struct library *first;
};

/**
 * The folder of installed libraries, or the program's own folder if it is not installed. The caller frees it. NULL: no
 * memory.
 */
char *libraries_installed_folder(void);

/** The routine of a library, by the library's file name. NULL: text says why. A library stays loaded. */
const supply_routine_t *libraries_find(struct libraries *libraries, const char *library, const char *routine,
                                       char *text);

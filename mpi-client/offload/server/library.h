/** The shared libraries whose routines may be called. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "supply_routine.h"

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

#endif

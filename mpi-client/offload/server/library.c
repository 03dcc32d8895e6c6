/**
 * Loads libraries of routines, from the user's folder and the installed one only, and finds routines in them. A library
 * stays loaded; its code and its declarations are trusted as this program's own.
 */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supply.h"

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

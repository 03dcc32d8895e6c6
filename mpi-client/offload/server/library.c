#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static char *path_of(const struct libraries *libraries, const char *name) {
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

static struct library *load(struct libraries *libraries, const char *name, char *text, size_t text_bytes) {
    if (name[0] == '\0' || strchr(name, '/') != NULL) {
        snprintf(text, text_bytes,
                 "'%s' is no file name of a library: supply-server loads libraries from its folders only (--libraries)",
                 name);
        return NULL;
    }
    char *path = path_of(libraries, name);
    if (path == NULL) {
        snprintf(text, text_bytes, "no memory for a library");
        return NULL;
    }
    for (struct library *library = libraries->first; library != NULL; library = library->next)
        if (strcmp(library->path, path) == 0) {
            free(path);
            return library;
        }
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const supply_routine_t *routines = loaded == NULL ? NULL : dlsym(loaded, "supply_routines");
    struct library *library = routines == NULL ? NULL : malloc(sizeof *library);
    if (library == NULL) {
        snprintf(text, text_bytes, "cannot load the library %s (--libraries): %s", name, dlerror());
        free(path);
        return NULL;
    }
    *library = (struct library){path, routines, libraries->first};
    return libraries->first = library;
}

static void name_all(const supply_routine_t *routine, char *text, size_t text_bytes) {
    for (size_t used = strlen(text); routine->name != NULL && used < text_bytes; routine++)
        used += (size_t)snprintf(text + used, text_bytes - used, " %s", routine->name);
}

const supply_routine_t *libraries_find(struct libraries *libraries, const char *library, const char *routine,
                                       char *text, size_t text_bytes) {
    const struct library *found = load(libraries, library, text, text_bytes);
    if (found == NULL) return NULL;
    for (const supply_routine_t *one = found->routines; one->name != NULL; one++)
        if (strcmp(one->name, routine) == 0) return one;
    snprintf(text, text_bytes, "the library %s has no routine '%s'; it has:", library, routine);
    name_all(found->routines, text, text_bytes);
    return NULL;
}

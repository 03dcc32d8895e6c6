#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static supply_status_t fail(const char *what, const struct named_path *file, const char *folder, const char *why,
                            struct failure *failure) {
    return supply_fail(failure, SUPPLY_ERROR_CONFIG, "%s %s (%s): its folder %s %s: %m: choose another folder", what,
                       file->path, file->origin, folder, why);
}

supply_status_t supply_folder_prepare(const char *what, const struct named_path *file, struct failure *failure) {
    char *folder = strdup(file->path);
    if (folder == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    supply_status_t status = SUPPLY_OK;
    char *end = strrchr(folder, '/');
    for (char *slash = folder + 1; status == SUPPLY_OK && slash <= end; slash++) {
        if (*slash != '/') continue;
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST && access(folder, F_OK) != 0)
            status = fail(what, file, folder, "can not be created", failure);
        *slash = '/';
    }
    end[end == folder] = '\0';
    if (status == SUPPLY_OK && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        status = fail(what, file, folder, "can not be written", failure);
    free(folder);
    return status;
}

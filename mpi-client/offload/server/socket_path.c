#include "socket_path.h"

#include <stdio.h>
#include <unistd.h>

#include "folder.h"
#include "options.h"
#include "ranks.h"

char *socket_path(const supply_options_t *options, int *folder, double *timeout, char *text) {
    struct settings settings;
    struct failure failure = {.text = "no memory"};
    char *path = NULL;
    *folder = -1;
    if (supply_settings(options, &settings, &failure) != SUPPLY_OK ||
        supply_folder_prepare(folder, "socket", &settings.files.mapped_file, NO_GROUP, &failure) != SUPPLY_OK ||
        asprintf(&path, "%s.server", settings.files.mapped_file.path) < 0) {
        snprintf(text, FAILURE_TEXT_BYTES, "%s", failure.text);
        path = NULL;
    }
    *timeout = settings.timeout;
    if (path == NULL && *folder >= 0) close(*folder);
    supply_settings_free(&settings);
    return path;
}

#include "existing_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool parent_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash[1] == '\0') return false;
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

void existing_folder(const char *path, char folder[PATH_MAX]) {
    struct stat entry;
    snprintf(folder, PATH_MAX, "%s", path);
    while (parent_folder(folder) && stat(folder, &entry) != 0) {
    }
}

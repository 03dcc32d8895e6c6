#include "named_path.h"

#include <stdio.h>

supply_status_t supply_fail_at(struct failure *failure, supply_status_t status, const char *what,
                               const struct named_path *file, const char *folder, const char *format,
                               va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (folder == NULL) return supply_fail(failure, status, "%s %s (%s) %s", what, file->path, file->origin, text);
    return supply_fail(failure, status, "%s %s (%s): its folder %s %s", what, file->path, file->origin, folder, text);
}

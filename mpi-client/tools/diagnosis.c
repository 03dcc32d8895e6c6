/** Prints one line for each check, as text or as JSON, and counts warnings and failures. */
#include "diagnosis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/failure.h"
#include "json_text.h"

#define TEXT_BYTES 4096

static const char *const status_names[] = {"ok", "warning", "failed", "skipped"};

static void diagnosis_print(struct diagnosis *diagnosis, enum diagnosis_status status, const char *check,
                            const char *text, const char *fix) {
    diagnosis->warnings += status == DIAGNOSIS_WARNING;
    diagnosis->failed += status == DIAGNOSIS_FAILED;
    if (diagnosis->json) {
        json_t *object = json_pack("{s:s, s:o, s:o, s:o}", "status", status_names[status], "check", json_text(check),
                                   "text", json_text(text), "fix", fix ? json_text(fix) : json_null());
        if (!json_print_line(diagnosis->stream, object)) diagnosis->incomplete = true;
        return;
    }
    char line[TEXT_BYTES];
    supply__copy_line(line, sizeof line, text, TEXT_BYTES);
    fprintf(diagnosis->stream, "%-8s %-11s %s\n", status_names[status], check, line);
    if (fix == NULL) return;
    supply__copy_line(line, sizeof line, fix, TEXT_BYTES);
    fprintf(diagnosis->stream, "%20s fix: %s\n", "", line);
}

void diagnosis_report(struct diagnosis *diagnosis, enum diagnosis_status status, const char *check, const char *fix,
                      const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    diagnosis_print(diagnosis, status, check, text, fix);
}

static void report_line(struct diagnosis *diagnosis, char *line, const char *file) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line;
    const char *status = strsep(&rest, "\t"), *check = strsep(&rest, "\t"), *text = strsep(&rest, "\t");
    const char *fix = strsep(&rest, "\t");
    for (int i = 0; text != NULL && i <= DIAGNOSIS_SKIPPED; i++)
        if (strcmp(status, status_names[i]) == 0) {
            diagnosis_print(diagnosis, (enum diagnosis_status)i, check, text, fix != NULL && *fix != '\0' ? fix : NULL);
            return;
        }
    diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "findings", NULL,
                     "%s: '%s' is not STATUS, CHECK, TEXT and FIX, separated by tabs", file, line);
}

bool diagnosis_report_file(struct diagnosis *diagnosis, const char *file) {
    FILE *stream = fopen(file, "re");
    if (stream == NULL) return false;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stream) >= 0) report_line(diagnosis, line, file);
    const bool read = !ferror(stream);
    free(line);
    fclose(stream);
    return read;
}

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

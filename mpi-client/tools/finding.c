#include "finding.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "json_text.h"

#define TEXT_BYTES 4096

static const char *const status_names[] = {"ok", "warning", "failed", "skipped"};

static void tell(struct findings *findings, enum finding_status status, const char *check, const char *text,
                 const char *fix) {
    findings->warnings += status == FINDING_WARNING;
    findings->failed += status == FINDING_FAILED;
    if (findings->json) {
        json_t *object = json_pack("{s:s, s:o, s:o, s:o}", "status", status_names[status], "check", json_text(check),
                                   "text", json_text(text), "fix", fix ? json_text(fix) : json_null());
        if (!json_print_line(findings->stream, object)) findings->incomplete = true;
        return;
    }
    char line[TEXT_BYTES];
    supply_copy_line(line, sizeof line, text, TEXT_BYTES);
    fprintf(findings->stream, "%-8s %-11s %s\n", status_names[status], check, line);
    if (fix == NULL) return;
    supply_copy_line(line, sizeof line, fix, TEXT_BYTES);
    fprintf(findings->stream, "%20s fix: %s\n", "", line);
}

void finding(struct findings *findings, enum finding_status status, const char *check, const char *fix,
             const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell(findings, status, check, text, fix);
}

static void tell_line(struct findings *findings, char *line, const char *file) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line;
    const char *status = strsep(&rest, "\t"), *check = strsep(&rest, "\t"), *text = strsep(&rest, "\t");
    const char *fix = strsep(&rest, "\t");
    for (int i = 0; text != NULL && i <= FINDING_SKIPPED; i++)
        if (strcmp(status, status_names[i]) == 0) {
            tell(findings, (enum finding_status)i, check, text, fix != NULL && *fix != '\0' ? fix : NULL);
            return;
        }
    finding(findings, FINDING_FAILED, "findings", NULL, "%s: '%s' is no line of STATUS, CHECK, TEXT and FIX", file,
            line);
}

bool findings_of_file(struct findings *findings, const char *file) {
    FILE *stream = fopen(file, "re");
    if (stream == NULL) return false;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stream) >= 0) tell_line(findings, line, file);
    const bool read = !ferror(stream);
    free(line);
    fclose(stream);
    return read;
}

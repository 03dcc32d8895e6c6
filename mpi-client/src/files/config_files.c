/**
 * Parses the config files, every line of both, before anything is opened. They come from users: a wrong line fails with
 * its number. It runs in the thread that opens.
 */
#include "files/config_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

supply_status_t supply__fail_at(struct failure *failure, supply_status_t status, const char *what,
                                const struct named_path *file, const char *folder, const char *format,
                                va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (folder == NULL) return supply__fail(failure, status, "%s %s (%s) %s", what, file->path, file->origin, text);
    return supply__fail(failure, status, "%s %s (%s): its folder %s %s", what, file->path, file->origin, folder, text);
}

/* With '\r', so that a file written on Windows means the same. */
#define WHITE_SPACE " \t\r\n\v\f"

struct reader {
    const char *file;
    FILE *stream;
    char *text;
    size_t capacity;
    size_t number;
};

uint64_t supply__config_size(const char *text) {
    if (*text < '0' || *text > '9') return 0;
    char *unit;
    errno = 0;
    uint64_t size = strtoull(text, &unit, 10);
    if (errno != 0) return 0;
    unsigned shift;
    if (*unit == '\0')
        shift = 0;
    else if (strcmp(unit, "KiB") == 0)
        shift = 10;
    else if (strcmp(unit, "MiB") == 0)
        shift = 20;
    else if (strcmp(unit, "GiB") == 0)
        shift = 30;
    else
        return 0;
    return size <= (uint64_t)INT64_MAX >> shift ? size << shift : 0;
}

/* The next line that is not empty, without its comment. NULL: the end, or the failure of *status. */
static char *next_line(struct reader *reader, supply_status_t *status, struct failure *failure) {
    ssize_t length;
    while ((length = getline(&reader->text, &reader->capacity, reader->stream)) >= 0) {
        /* Editors on Windows put a byte order mark in front. */
        if (reader->number++ == 0 && strncmp(reader->text, "\xEF\xBB\xBF", 3) == 0) memset(reader->text, ' ', 3);
        if (strlen(reader->text) != (size_t)length) {
            *status = supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s:%zu: holds a zero byte: is this a text file?",
                                   reader->file, reader->number);
            return NULL;
        }
        reader->text[strcspn(reader->text, "#")] = '\0';
        if (reader->text[strspn(reader->text, WHITE_SPACE)] != '\0') return reader->text;
    }
    *status = SUPPLY_OK;
    if (ferror(reader->stream))
        *status = supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s: cannot be read: %m", reader->file);
    return NULL;
}

static supply_status_t set_path(struct named_path *named, const char *word, const struct reader *reader,
                                struct failure *failure) {
    if (word[0] != '/')
        return supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s:%zu: '%s' is not an absolute path", reader->file,
                            reader->number, word);
    named->path = strdup(word);
    if (asprintf(&named->origin, "%s:%zu", reader->file, reader->number) < 0) named->origin = NULL;
    if (named->path == NULL || named->origin == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory while reading %s", reader->file);
    return SUPPLY_OK;
}

static supply_status_t fail_twice(const char *word, const struct reader *reader, struct failure *failure) {
    return supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s:%zu: '%s' is the second of its kind", reader->file,
                        reader->number, word);
}

/* "group=NAME". The group is looked up when a pair is opened: tools that open none need not know it. */
static supply_status_t config_set_group(struct config_line *line, const char *word, const struct reader *reader,
                                        struct failure *failure) {
    const char *name = strchr(word, '=') + 1;
    if (line->group != NULL) return fail_twice(word, reader, failure);
    if (*name == '\0')
        return supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s:%zu: '%s' names no group", reader->file, reader->number,
                            word);
    line->group = strdup(name);
    if (line->group == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory while reading %s", reader->file);
    return SUPPLY_OK;
}

/* "ring=SIZE", "ring=auto", "block=SIZE" or "group=NAME". */
static supply_status_t set_word(struct config_line *line, const char *word, const struct reader *reader,
                                struct failure *failure) {
    uint64_t *size;
    if (strncmp(word, "group=", 6) == 0) return config_set_group(line, word, reader, failure);
    if (strncmp(word, "ring=", 5) == 0)
        size = &line->ring_bytes;
    else if (strncmp(word, "block=", 6) == 0)
        size = &line->block_bytes;
    else
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s:%zu: unknown word '%s': a line is PATH [ring=SIZE|auto] [block=SIZE] [group=NAME]",
                            reader->file, reader->number, word);
    if (*size != 0) return fail_twice(word, reader, failure);
    *size = strcmp(word, "ring=auto") == 0 ? RING_AUTO : supply__config_size(strchr(word, '=') + 1);
    if (*size == 0)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s:%zu: '%s' is not a size: write it as 16MiB, 64KiB, 1GiB or in bytes", reader->file,
                            reader->number, word);
    return SUPPLY_OK;
}

static supply_status_t parse_mapped_file(struct config_line *line, char *text, const struct reader *reader,
                                         struct failure *failure) {
    char *rest;
    TRY(set_path(&line->mapped_file, strtok_r(text, WHITE_SPACE, &rest), reader, failure));
    for (char *word; (word = strtok_r(NULL, WHITE_SPACE, &rest)) != NULL;) TRY(set_word(line, word, reader, failure));
    return SUPPLY_OK;
}

static supply_status_t parse_named_pipes(struct config_line *line, char *text, const struct reader *reader,
                                         struct failure *failure) {
    char *rest;
    char *request = strtok_r(text, WHITE_SPACE, &rest);
    char *notification = strtok_r(NULL, WHITE_SPACE, &rest);
    if (notification == NULL || strtok_r(NULL, WHITE_SPACE, &rest) != NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s:%zu: a line is REQUEST_PIPE NOTIFICATION_PIPE: exactly two paths", reader->file,
                            reader->number);
    TRY(set_path(&line->request_pipe, request, reader, failure));
    return set_path(&line->notification_pipe, notification, reader, failure);
}

typedef supply_status_t parse_line(struct config_line *line, char *text, const struct reader *reader,
                                   struct failure *failure);

/* Reads one file into its fields of the lines, and grows the array if needed. *count: its lines. */
static supply_status_t read_file(const char *file, parse_line *parse, struct config_lines *lines, size_t *count,
                                 struct failure *failure) {
    struct reader reader = {.file = file, .stream = fopen(file, "re")};
    if (reader.stream == NULL) return supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s: cannot be opened: %m", file);
    supply_status_t status = SUPPLY_OK;
    *count = 0;
    for (char *text; status == SUPPLY_OK && (text = next_line(&reader, &status, failure)) != NULL; ++*count) {
        if (*count == lines->count) {
            struct config_line *grown = reallocarray(lines->lines, lines->count + 1, sizeof *grown);
            if (grown == NULL) {
                status = supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory while reading %s", file);
                break;
            }
            lines->lines = grown;
            lines->lines[lines->count++] = (struct config_line){0};
        }
        status = parse(&lines->lines[*count], text, &reader, failure);
    }
    free(reader.text);
    fclose(reader.stream);
    return status;
}

/* By path, and those of the same path in the order of the lines. */
static int compare_paths(const void *one, const void *other) {
    const struct named_path *const *a = (const struct named_path *const *)one;
    const struct named_path *const *b = (const struct named_path *const *)other;
    const int order = strcmp((*a)->path, (*b)->path);
    return order != 0 ? order : *a < *b ? -1 : 1;
}

/* Two ranks would fight for a path that is given twice. This is found here, not at run time. */
static supply_status_t check_distinct(const struct config_lines *lines, struct failure *failure) {
    const size_t count = 3 * lines->count;
    const struct named_path **paths = (const struct named_path **)malloc(count * sizeof *paths + 1);
    if (paths == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    for (size_t i = 0; i < lines->count; i++) {
        paths[3 * i] = &lines->lines[i].mapped_file;
        paths[3 * i + 1] = &lines->lines[i].request_pipe;
        paths[3 * i + 2] = &lines->lines[i].notification_pipe;
    }
    qsort((void *)paths, count, sizeof *paths, compare_paths);
    supply_status_t status = SUPPLY_OK;
    for (size_t i = 1; i < count && status == SUPPLY_OK; i++)
        if (strcmp(paths[i - 1]->path, paths[i]->path) == 0)
            status = supply__fail(failure, SUPPLY_ERROR_CONFIG, "%s: %s stands at %s, too: every file is its own",
                                  paths[i]->origin, paths[i]->path, paths[i - 1]->origin);
    free((void *)paths);
    return status;
}

supply_status_t supply__config_read(const char *mapped_files, const char *named_pipes, struct config_lines *lines,
                                    struct failure *failure) {
    *lines = (struct config_lines){0};
    size_t mapped_count = 0, pipes_count = 0;
    TRY(read_file(mapped_files, parse_mapped_file, lines, &mapped_count, failure));
    TRY(read_file(named_pipes, parse_named_pipes, lines, &pipes_count, failure));
    if (mapped_count != pipes_count)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s has %zu lines and %s has %zu: line i of both belongs to local rank i", mapped_files,
                            mapped_count, named_pipes, pipes_count);
    return check_distinct(lines, failure);
}

void supply__config_line_free(struct config_line *line) {
    struct named_path *paths[] = {&line->mapped_file, &line->request_pipe, &line->notification_pipe};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        free(paths[i]->path);
        free(paths[i]->origin);
    }
    free(line->group);
    *line = (struct config_line){0};
}

void supply__config_free(struct config_lines *lines) {
    for (size_t i = 0; i < lines->count; i++) supply__config_line_free(&lines->lines[i]);
    free(lines->lines);
    *lines = (struct config_lines){0};
}

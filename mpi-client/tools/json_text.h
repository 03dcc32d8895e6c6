/** JSON from text that may hold any bytes, for the programs of this folder that print JSON. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Makes a JSON string. If the text is not UTF-8, '?' replaces each byte outside ASCII. NULL: out of memory. */
static inline json_t *json_text(const char *text) {
    json_t *string = json_string(text);
    if (string != NULL) return string;
    char *plain = strdup(text);
    if (plain == NULL) return NULL;
    for (char *byte = plain; *byte != '\0'; byte++)
        if ((unsigned char)*byte >= 0x80) *byte = '?';
    string = json_string(plain);
    free(plain);
    return string;
}

/** Prints the object on one line, and frees it. NULL is allowed. False: out of memory, or the stream has failed. */
static inline bool json_print_line(FILE *stream, json_t *object) {
    const bool printed = object != NULL && json_dumpf(object, stream, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0 &&
                         putc('\n', stream) != EOF;
    json_decref(object);
    return printed;
}

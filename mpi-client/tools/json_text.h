/** JSON from text that may hold any bytes. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/** Makes a JSON string. If the text is not UTF-8, '?' replaces each byte outside ASCII. NULL: out of memory. */
json_t *json_text(const char *text);

/** Prints the object on one line, and frees it. NULL is allowed. False: out of memory, or the stream has failed. */
bool json_print_line(FILE *stream, json_t *object);

#endif

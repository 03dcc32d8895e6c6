/** JSON from what may be any bytes. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/** A string; where the text is not UTF-8, with '?' for every byte beyond ASCII. NULL: out of memory. */
json_t *json_text(const char *text);

/** Prints the object in one line, and drops it. False: out of memory, or the stream has failed. */
bool json_print_line(FILE *stream, json_t *object);

#endif

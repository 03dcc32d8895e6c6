#include "messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *name = "bench";

void messages_from(const char *program) { name = program; }

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

#include "failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void supply_copy_line(char *to, size_t to_bytes, const char *text, size_t text_bytes) {
    size_t length = strnlen(text, text_bytes);
    if (length >= to_bytes) {
        length = to_bytes - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        to[i] = byte < 0x20 || byte == 0x7F ? ' ' : (char)byte;
    }
    to[length] = '\0';
}

supply_status_t supply_fail(struct failure *failure, supply_status_t status, const char *format, ...) {
    const int error = errno;
    /* The arguments may be texts of this very failure: format them before it is overwritten. */
    char text[2 * sizeof failure->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    failure->status = status;
    failure->error = status == SUPPLY_ERROR_SYSTEM ? error : 0;
    supply_copy_line(failure->text, sizeof failure->text, text, sizeof text);
    return status;
}

supply_status_t supply_fail_by_number(struct failure *failure, const char *field, uint64_t is, const char *must,
                                      uint64_t be) {
    return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s is %" PRIu64 ", must be %s %" PRIu64, field, is, must, be);
}

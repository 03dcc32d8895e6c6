/**
 * Failures as one line of valid UTF-8, whatever bytes a peer, a file or a user has put into them. The struct is the
 * caller's: no lock.
 */
#include "base/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/* Bytes of the UTF-8 character that begins there; 0: none does. */
static size_t character_bytes(const unsigned char *text, size_t left) {
    const unsigned char first = text[0];
    const size_t bytes = first < 0x80 ? 1 : first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (bytes < 2) return bytes;
    if (bytes > left) return 0;
    for (size_t i = 1; i < bytes; i++)
        if (!is_continuation(text[i])) return 0;
    /* Longer forms than needed, surrogates, and what is beyond the last character. */
    const unsigned char second = text[1];
    const bool is_wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                          (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return is_wrong ? 0 : bytes;
}

/* C1 ones have two bytes. A terminal may take one of them for ESC and another character. */
static bool is_control(const unsigned char *character) {
    return character[0] < 0x20 || character[0] == 0x7F || (character[0] == 0xC2 && character[1] < 0xA0);
}

void supply__copy_line(char *to, size_t to_bytes, const char *text, size_t text_bytes) {
    size_t length = strnlen(text, text_bytes);
    if (length >= to_bytes) {
        length = to_bytes - 1;
        while (length > 0 && is_continuation((unsigned char)text[length])) length--;
    }
    for (size_t i = 0; i < length;) {
        const unsigned char *character = (const unsigned char *)text + i;
        const size_t bytes = character_bytes(character, length - i);
        if (bytes == 0)
            to[i++] = '?';
        else if (is_control(character))
            for (size_t k = 0; k < bytes; k++) to[i++] = ' ';
        else
            for (size_t k = 0; k < bytes; k++, i++) to[i] = text[i];
    }
    to[length] = '\0';
}

supply_status_t(supply__fail)(struct failure *failure, supply_status_t status, const char *format, ...) {
    const int error = errno;
    /* The arguments may be texts of this very failure: format them before it is overwritten. */
    char text[2 * sizeof failure->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    failure->status = status;
    failure->error = status == SUPPLY_ERROR_SYSTEM ? error : 0;
    supply__copy_line(failure->text, sizeof failure->text, text, sizeof text);
    return status;
}

supply_status_t supply__fail_by_number(struct failure *failure, const char *field, uint64_t is, const char *must,
                                       uint64_t be) {
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "%s is %" PRIu64 ", must be %s %" PRIu64, field, is, must, be);
}

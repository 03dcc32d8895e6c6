/** The status and the one-line text of a failure. */
#pragma once

#include "supply.h"

struct failure {
    supply_status_t status;
    int error; /**< errno, if status is SUPPLY_ERROR_SYSTEM; else 0 */
    char text[SUPPLY_TEXT_BYTES];
};

/** Fills in *failure, with errno as it is now; the text becomes one line of at most its buffer. Returns status. */
__attribute__((format(printf, 3, 4))) supply_status_t supply__fail(struct failure *failure, supply_status_t status,
                                                                   const char *format, ...);

#ifdef __clang_analyzer__
/* It cannot see that the status is returned, and would follow paths on which a failure is none. */
#define supply__fail(failure, status, ...) (supply__fail((failure), (status), __VA_ARGS__), (status))
#endif

/** Returns from the calling function with the status of an expression, unless that is SUPPLY_OK. */
#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        const supply_status_t tried_ = (expression);                                                                   \
        if (tried_ != SUPPLY_OK) return tried_;                                                                        \
    } while (0)

/** SUPPLY_ERROR_CONTRACT: "FIELD is IS, must be MUST BE". The caller adds what the field belongs to. */
supply_status_t supply__fail_by_number(struct failure *failure, const char *field, uint64_t is, const char *must,
                                       uint64_t be);

/**
 * Copies text into a buffer: the bytes of control characters become spaces, those that are not UTF-8 question marks,
 * and no UTF-8 sequence is cut in two.
 */
void supply__copy_line(char *to, size_t to_bytes, const char *text, size_t text_bytes);

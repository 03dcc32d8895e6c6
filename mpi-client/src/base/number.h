/** Numbers in texts, with a point in every locale of the program. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>

/** False: the text is no number, or has more than one. */
static inline bool supply__number_read(const char *text, double *number) {
    const locale_t point = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (point == (locale_t)0) return false;
    char *end;
    *number = strtod_l(text, &end, point);
    freelocale(point);
    return end != text && *end == '\0';
}

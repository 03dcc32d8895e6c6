/** Copies numbers of any type as doubles. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Bytes of a number of this format of the Arrow C Data Interface; 0: it is not one of numbers. */
size_t doubles_number_bytes(char format);

/** Copies `count` numbers of that format. Returns the place of the first NaN or infinity, or `count`. */
size_t doubles_copy(double *to, const void *from, char format, size_t count);

/** Output structs of supply.h, whose size is that of the header that the program was built with. */
#ifndef SUPPLY_SIZED_H
#define SUPPLY_SIZED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Copies a struct of this library to one of the program. Fields that this library does not know become 0. */
static inline void supply_copy_sized(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    /* Nearly every call. The size is then a constant, and the copy a few moves. */
    if (to_bytes == from_bytes) {
        memcpy(to, from, from_bytes);
        return;
    }
    if (to_bytes > from_bytes) memset((uint8_t *)to + from_bytes, 0, to_bytes - from_bytes);
    memcpy(to, from, to_bytes < from_bytes ? to_bytes : from_bytes);
}

#endif

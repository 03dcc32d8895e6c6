#ifndef MEMORY_H
#define MEMORY_H

#include <stdint.h>

/** Bytes that this process has had resident at most; pages that it shares are counted, too. */
uint64_t peak_memory(void);

#endif

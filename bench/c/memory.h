#ifndef MEMORY_H
#define MEMORY_H

#include <stdint.h>

/** Peak resident memory of this process in bytes, including shared pages. */
uint64_t peak_memory(void);

#endif

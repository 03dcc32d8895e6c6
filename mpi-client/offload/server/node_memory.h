/** The memory that programs of this node can still get. */
#ifndef NODE_MEMORY_H
#define NODE_MEMORY_H

#include <stddef.h>

/** Left to the rest of the node: without it the kernel would end a process, and not necessarily this one. */
#define NODE_MEMORY_RESERVE ((size_t)128 << 20)

/**
 * Bytes, by /proc/meminfo and, if it has less, by this process's control group: its limit without what is used, where
 * cached files do not count. Memory that a process has marked by MADV_FREE is not available. root: the folder that
 * holds proc and sys, "" except in tests.
 */
size_t node_memory_available(const char *root);

#endif

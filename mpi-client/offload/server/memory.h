/**
 * The memory that programs of this node can still get, and memory that grows without being copied: the kernel moves its
 * pages.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct growing {
    uint8_t *address; /**< page-aligned; NULL: empty */
    size_t bytes;     /**< used */
    size_t capacity;
};

/**
 * Space for `bytes` more at the end. NULL: the node has not so much memory; growing_needed() says how much it takes.
 * Earlier addresses are no longer valid.
 */
void *growing_add(struct growing *memory, size_t bytes);

/** Bytes that are needed for `bytes` more, beside what the memory has already. */
size_t growing_needed(const struct growing *memory, size_t bytes);

/**
 * For empty memory whose bytes are all written before they are read: begins with memory that was freed earlier, if
 * there is some. Otherwise added bytes are 0.
 */
void growing_reuse(struct growing *memory);

/** Returns to the kernel what growing_reuse() would use. */
void growing_drop_spare(void);

/** Releases what is not used. */
void growing_fit(struct growing *memory);

void growing_free(struct growing *memory);

/** Left to the rest of the node: without it the kernel would end a process, and not necessarily this one. */
#define NODE_MEMORY_RESERVE ((size_t)128 << 20)

/**
 * Bytes, by /proc/meminfo and, if it has less, by this process's control group: its limit without what is used, where
 * cached files do not count. Memory that a process has marked by MADV_FREE is not available. root: the folder that
 * holds proc and sys, "" except in tests.
 */
size_t node_memory_available(const char *root);

/** The memory limit of this process's container, by Linux control groups, versions 1 and 2. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct memory_limit {
    bool limited;
    uint64_t limit_bytes;  /**< of the group that has the least left: this process's, or an ancestor */
    uint64_t used_bytes;   /**< of that group, including the page cache */
    uint64_t cached_bytes; /**< of these, files that the kernel can drop */
    char place[4096];      /**< that group's folder */
    uint64_t least_bytes;  /**< the smallest limit of all these groups */
};

/** Reads the limit. root is the folder that holds proc and sys: "" except in tests. */
void supply__memory_limit_read(struct memory_limit *limit, const char *root);

/** Bytes that the process may still use. Files that the kernel can drop are no use. UINT64_MAX: there is no limit. */
uint64_t supply__memory_limit_left(const struct memory_limit *limit);

/**
 * Bytes that the node has left, by /proc/meminfo. Memory that a process has marked by MADV_FREE is not available.
 * UINT64_MAX: unknown.
 */
uint64_t supply__memory_available(const char *root);

/** A hierarchy of groups. */
struct control_groups {
    const char *type;       /**< of its mount: "cgroup2" or "cgroup" */
    const char *controller; /**< in /proc/self/cgroup and in the mount's options; "" for version 2 */
};

/**
 * Calls visit with the folder of this process's group, and with those of its ancestors that this container can see.
 * root is the folder that holds proc and sys: "" except in tests.
 */
void supply__control_groups_visit(const struct control_groups *groups, const char *root,
                                  void (*visit)(void *context, const char *folder), void *context);

/** Reads a file of a group. False if it has no number: it does not exist, or says that there is no limit. */
bool supply__control_group_number(const char *folder, const char *file, uint64_t *number);

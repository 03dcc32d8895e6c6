/** How much memory this process's container may use, in version 1 and 2 of Linux's control groups. */
#ifndef MEMORY_LIMIT_H
#define MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct memory_limit {
    bool limited;
    uint64_t limit_bytes; /**< the tightest of the group's and those above it */
    uint64_t used_bytes;  /**< of that group, what can be given back (the page cache) included */
    char place[4096];     /**< that group's folder */
};

/** root: what stands before /proc and /sys; "" but in tests. */
void memory_limit_read(struct memory_limit *limit, const char *root);

#endif

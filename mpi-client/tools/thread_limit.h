/** The threads and processes that this process's container, and its user, may have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct thread_limit {
    bool limited;
    uint64_t limit;
    uint64_t used;    /**< as far as this process can see */
    char place[4096]; /**< the folder of a control group; "": it is a limit of the user (ulimit -u) */
};

/** What is left until the limit. */
uint64_t thread_limit_left(const struct thread_limit *limit);

/**
 * Reads the limit of which the least is left: of the control groups, versions 1 and 2, and of the user. root is the
 * folder that holds proc and sys: "" except in tests, which leave the user out.
 */
void thread_limit_read(struct thread_limit *limit, const char *root);

/**
 * The process that opened something: memory that the kernel clears in each child, also in one of _Fork() or clone(),
 * which run no handler of pthread_atfork(). A question takes one read, and no system call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 4.14, which glibc 2.26 does not know yet. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/** The mark of this process; NULL and errno. Free it with supply__opener_free(). */
static inline bool *supply__opener_mark(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) return NULL;
    if (madvise(mark, page, MADV_WIPEONFORK) == 0) {
        *(bool *)mark = true;
        return (bool *)mark;
    }
    munmap(mark, page);
    return NULL;
}

static inline void supply__opener_free(bool *mark) {
    if (mark != NULL) munmap(mark, (size_t)sysconf(_SC_PAGESIZE));
}

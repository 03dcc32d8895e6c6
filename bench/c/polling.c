#include "polling.h"

#include <sched.h>
#include <sys/mman.h>

#include "messages.h"

enum { POLLS = 1000 };

void *mapped(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die("no memory for %zu bytes: %m", bytes);
    return memory;
}

void await(const atomic_ulong *count, size_t value) {
    for (unsigned polls = 0; atomic_load_explicit(count, memory_order_acquire) < value; polls++)
        if (polls >= POLLS) sched_yield();
}

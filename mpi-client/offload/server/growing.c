#include "growing.h"

#include <sys/mman.h>
#include <unistd.h>

#include "node_memory.h"

#define FIRST_BYTES ((size_t)1 << 20)

static size_t whole_pages(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

size_t growing_needed(const struct growing *memory, size_t bytes) {
    return memory->bytes + bytes > memory->capacity ? memory->bytes + bytes - memory->capacity : 0;
}

static bool resize(struct growing *memory, size_t capacity) {
    void *address = memory->address == NULL
                        ? mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                        : mremap(memory->address, memory->capacity, capacity, MREMAP_MAYMOVE);
    if (address == MAP_FAILED) return false;
    memory->address = address;
    memory->capacity = capacity;
    return true;
}

void *growing_add(struct growing *memory, size_t bytes) {
    const size_t needed = growing_needed(memory, bytes);
    if (needed > 0) {
        const size_t available = node_memory_available("");
        if (available < NODE_MEMORY_RESERVE || needed > available - NODE_MEMORY_RESERVE) return NULL;
        size_t capacity = memory->capacity + memory->capacity / 2;
        if (capacity < memory->bytes + bytes) capacity = memory->bytes + bytes;
        if (capacity < FIRST_BYTES) capacity = FIRST_BYTES;
        if (!resize(memory, whole_pages(capacity))) return NULL;
    }
    uint8_t *added = memory->address + memory->bytes;
    memory->bytes += bytes;
    return added;
}

void growing_fit(struct growing *memory) {
    if (memory->bytes > 0 && memory->bytes < memory->capacity) resize(memory, whole_pages(memory->bytes));
}

void growing_free(struct growing *memory) {
    if (memory->address != NULL) munmap(memory->address, memory->capacity);
    *memory = (struct growing){0};
}

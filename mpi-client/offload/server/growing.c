#include "growing.h"

#include <sys/mman.h>
#include <unistd.h>

#include "node_memory.h"

#define FIRST_BYTES ((size_t)1 << 20)
/* Of the kernel's large pages. A page fault for each small page takes longer than copying into it. */
#define LARGE_PAGE ((size_t)2 << 20)

/* The largest memory that was freed. The kernel may take its pages back, and until then they cost no page faults. */
static struct growing spare;

static size_t whole_pages(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

size_t growing_needed(const struct growing *memory, size_t bytes) {
    return memory->bytes + bytes > memory->capacity ? memory->bytes + bytes - memory->capacity : 0;
}

/* Addresses for `capacity` bytes that begin with a large page, if there is one. NULL: none are free. */
static void *find_addresses(size_t capacity) {
    uint8_t *first = mmap(NULL, capacity + LARGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (first == MAP_FAILED) return NULL;
    const size_t before = (LARGE_PAGE - (uintptr_t)first % LARGE_PAGE) % LARGE_PAGE;
    if (before > 0) munmap(first, before);
    munmap(first + before + capacity, LARGE_PAGE - before);
    return first + before;
}

static bool grow(struct growing *memory, size_t capacity) {
    void *to = find_addresses(capacity);
    if (to == NULL) return false;
    void *address = memory->address == NULL
                        ? mmap(to, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
                        : mremap(memory->address, memory->capacity, capacity, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (address == MAP_FAILED) {
        munmap(to, capacity);
        return false;
    }
    /* Without it, small pages do. */
    madvise(address, capacity, MADV_HUGEPAGE);
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
        if (!grow(memory, whole_pages(capacity))) return NULL;
    }
    uint8_t *added = memory->address + memory->bytes;
    memory->bytes += bytes;
    return added;
}

static void release(uint8_t *address, size_t capacity) {
    if (capacity > spare.capacity) {
        const struct growing smaller = spare;
        madvise(address, capacity, MADV_FREE);
        spare = (struct growing){.address = address, .capacity = capacity};
        address = smaller.address;
        capacity = smaller.capacity;
    }
    if (capacity > 0) munmap(address, capacity);
}

void growing_reuse(struct growing *memory) {
    const size_t available = node_memory_available("");
    /* The kernel may have given its pages to others. */
    if (available < NODE_MEMORY_RESERVE || spare.capacity > available - NODE_MEMORY_RESERVE) return;
    *memory = spare;
    spare = (struct growing){0};
}

void growing_fit(struct growing *memory) {
    /* A large page is not divided. */
    const size_t unit = memory->bytes < LARGE_PAGE ? whole_pages(1) : LARGE_PAGE;
    const size_t kept = (memory->bytes + unit - 1) / unit * unit;
    if (kept >= memory->capacity) return;
    release(memory->address + kept, memory->capacity - kept);
    memory->capacity = kept;
    if (kept == 0) memory->address = NULL;
}

void growing_free(struct growing *memory) {
    if (memory->address != NULL) release(memory->address, memory->capacity);
    *memory = (struct growing){0};
}

/**
 * Memory by mmap() and mremap(). It asks what the node has left before it grows, because the kernel would otherwise end
 * a process later.
 */
#include "memory.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/memory_limit.h"

/* More than is needed now. A long step would be used up without a further check of the node's memory. */
#define STEP_MIN ((size_t)1 << 20)
#define STEP_MAX ((size_t)256 << 20)
/* Of the kernel's large pages. A page fault for each small page takes longer than copying into it. */
#define LARGE_PAGE ((size_t)2 << 20)

/* The largest memory that was freed. The kernel may take its pages back, and until then they cost no page faults. */
static struct growing spare;

void growing_drop_spare(void) {
    if (spare.address != NULL) munmap(spare.address, spare.capacity);
    spare = (struct growing){0};
}

static bool is_free(size_t bytes) {
    const size_t available = node_memory_available("");
    return available >= NODE_MEMORY_RESERVE && bytes <= available - NODE_MEMORY_RESERVE;
}

static bool make_free(size_t bytes) {
    if (is_free(bytes)) return true;
    growing_drop_spare();
    return is_free(bytes);
}

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

static bool memory_grow(struct growing *memory, size_t capacity) {
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
    size_t needed = growing_needed(memory, bytes);
    /* Also no bytes have an address: NULL says that there is no memory. */
    if (memory->address == NULL && needed == 0) needed = 1;
    if (needed > 0) {
        size_t step = memory->capacity / 2 < STEP_MAX ? memory->capacity / 2 : STEP_MAX;
        if (step < STEP_MIN) step = STEP_MIN;
        const bool is_large = step > needed && is_free(step);
        if (!is_large) step = needed;
        if ((!is_large && !make_free(step)) || !memory_grow(memory, whole_pages(memory->capacity + step))) return NULL;
    }
    uint8_t *added = memory->address + memory->bytes;
    memory->bytes += bytes;
    return added;
}

static void memory_release(uint8_t *address, size_t capacity) {
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
    /* The kernel may have given its pages to others. */
    if (!is_free(spare.capacity)) {
        growing_drop_spare();
        return;
    }
    *memory = spare;
    spare = (struct growing){0};
}

void growing_fit(struct growing *memory) {
    /* A large page is not divided. */
    const size_t unit = memory->bytes < LARGE_PAGE ? whole_pages(1) : LARGE_PAGE;
    const size_t kept = (memory->bytes + unit - 1) / unit * unit;
    if (kept >= memory->capacity) return;
    memory_release(memory->address + kept, memory->capacity - kept);
    memory->capacity = kept;
    if (kept == 0) memory->address = NULL;
}

void growing_free(struct growing *memory) {
    if (memory->address != NULL) memory_release(memory->address, memory->capacity);
    *memory = (struct growing){0};
}

size_t node_memory_available(const char *root) {
    struct memory_limit limit;
    supply__memory_limit_read(&limit, root);
    const uint64_t of_node = supply__memory_available(root), of_group = supply__memory_limit_left(&limit);
    return of_node < of_group ? of_node : of_group;
}

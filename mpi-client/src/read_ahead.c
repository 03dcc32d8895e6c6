#include "read_ahead.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_block.h"

#define READ_AHEAD_BYTES_MAX ((uint64_t)8 << 20)

/* The notification of a number that may be published. It is only a hint: the task may change it, R3 checks it later. */
static bool peek(const struct pair *pair, uint64_t sequence, struct notification *next) {
    if (__atomic_load_n(&supply_mapped_header(&pair->mapped_file)->published, __ATOMIC_ACQUIRE) <= sequence)
        return false;
    memcpy(next, pair->mapped_file.address + supply_ring_slot_offset(&pair->settings, sequence), sizeof *next);
    return next->sequence == sequence;
}

/*
 * The kernel itself reads ahead within a partition. MADV_SEQUENTIAL would slow that down: 1.0 instead of 1.5 GB/s, with
 * blocks of 8 MiB and a quarter of the file in memory.
 */
static bool follows(const struct resident_file *file, const struct notification *next,
                    const struct notification *received) {
    return next->file == received->file && next->offset == received->offset + file->block_bytes;
}

void supply_read_ahead(const struct blocks *blocks, const struct pair *pair, const struct notification *received) {
    struct notification next;
    if (blocks->foreign_files.opened == 0) return;
    if (!peek(pair, received->sequence + 1, &next) || next.file == 0 || next.file > FOREIGN_FILES_MAX) return;
    const struct resident_file *file = &blocks->resident_files[next.file - 1];
    if (file->mapping == NULL || next.offset >= file->mapping->entry.file_bytes || follows(file, &next, received))
        return;
    uint64_t bytes = file->mapping->entry.file_bytes - next.offset;
    if (bytes > next.size) bytes = next.size;
    if (bytes > READ_AHEAD_BYTES_MAX) bytes = READ_AHEAD_BYTES_MAX;
    const uint64_t inside_page = next.offset % (uint64_t)sysconf(_SC_PAGESIZE);
    madvise((void *)(file->mapping->address + next.offset - inside_page), bytes + inside_page, MADV_WILLNEED);
}

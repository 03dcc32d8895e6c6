/**
 * O1 and O2: the mapped file. Every page is reserved before it is mapped. Only the header is writable for the rank; the
 * ring is the task's. A program may cut the file nevertheless, so its size is checked before it is read. It runs in the
 * thread that uses the handle.
 */
#include "pair/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail_point.h"
#include "files/file_space.h"

/* What of the mapping lies in the rank's own file. */
static size_t own_bytes(const struct mapped_file *mapped) { return mapped->ring_fd < 0 ? mapped->bytes : RING_OFFSET; }

/* The own file, and after it the ring of reader 0, at the same place as in that one's file. */
static void *map_both(const struct mapped_file *mapped, int fd) {
    if (mapped->ring_fd < 0) return mmap(NULL, mapped->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *address = mmap(NULL, mapped->bytes, PROT_READ, MAP_SHARED, mapped->ring_fd, 0);
    if (address == MAP_FAILED) return MAP_FAILED;
    if (mmap(address, RING_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) return address;
    const int error = errno;
    munmap(address, mapped->bytes);
    errno = error;
    return MAP_FAILED;
}

/* fd: of the file, which becomes the mapping's; or -1. */
static supply_status_t map(struct mapped_file *mapped, int fd, struct failure *failure) {
    void *address = fd < 0 ? MAP_FAILED : map_both(mapped, fd);
    const int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    if (address == MAP_FAILED)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "mapped file %s (%s): %zu bytes cannot be mapped: %m",
                            mapped->file.name->path, mapped->file.name->origin, mapped->bytes);
    mapped->address = address;
    /* Only the task writes there. A program that writes is stopped at once, and not by a broken block later. */
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (SCHEMA_OFFSET + page - 1) / page * page;
    if (mapped->bytes > from && mprotect(mapped->address + from, mapped->bytes - from, PROT_READ) != 0)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "mapped file %s (%s) cannot be protected: %m",
                            mapped->file.name->path, mapped->file.name->origin);
    return SUPPLY_OK;
}

supply_status_t supply__mapped_file_create(struct mapped_file *mapped, struct settings *settings,
                                           struct failure *failure) {
    *mapped = MAPPED_FILE_NONE;
    supply_status_t status =
        supply__claim(&mapped->file, FILE_MAPPED, &settings->files.mapped_file, settings->group, failure);
    if (status != SUPPLY_OK) return status;
    supply__fail_point("O1");
    if (settings->reader > 0) status = supply__ring_join(&mapped->ring_fd, settings, failure);
    mapped->bytes = RING_OFFSET + settings->block_bytes * settings->block_count;
    if (status == SUPPLY_OK) status = supply__space_begin(&mapped->file, MAGIC, own_bytes(mapped), failure);
    supply__fail_point("O2");
    /* By a descriptor of its own: in a forked child the mapping must not keep the lock of the claimed one. */
    if (status == SUPPLY_OK) status = map(mapped, supply__claim_reopen(&mapped->file, O_RDWR), failure);
    if (status != SUPPLY_OK) supply__mapped_file_remove(mapped);
    return status;
}

supply_status_t supply__mapped_file_create_unnamed(struct mapped_file *mapped, const struct settings *settings,
                                                   struct failure *failure) {
    *mapped = MAPPED_FILE_NONE;
    mapped->file.name = &settings->files.mapped_file;
    mapped->bytes = RING_OFFSET + settings->block_bytes * settings->block_count;
    TRY(supply__memory_check(mapped->bytes, "", failure));
    mapped->file.fd = supply__claim_unnamed(mapped->bytes);
    if (mapped->file.fd >= 0) {
        const supply_status_t status = map(mapped, fcntl(mapped->file.fd, F_DUPFD_CLOEXEC, 0), failure);
        if (status != SUPPLY_OK) supply__mapped_file_remove(mapped);
        return status;
    }
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%zu bytes of memory cannot be reserved: %m", mapped->bytes);
}

void supply__header_fill(struct mapped_file_header *header, const char *magic, const struct settings *settings,
                         uint64_t file_bytes, uint64_t ring_offset) {
    memcpy(header->magic, magic, sizeof header->magic);
    header->byte_order = BYTE_ORDER_MARK;
    header->file_bytes = file_bytes;
    header->ring_offset = ring_offset;
    header->block_bytes = settings->block_bytes;
    header->rank_pid = settings->rank_pid;
    header->rank = settings->rank;
    header->local_rank = settings->local_rank;
}

void supply__mapped_file_fill(const struct mapped_file *mapped, const struct settings *settings) {
    struct mapped_file_header *header = mapped->header;
    supply__header_fill(header, MAGIC, settings, mapped->bytes, RING_OFFSET);
    header->generation = settings->generation;
    header->block_count = settings->block_count;
    header->accepts = settings->exchange ? ACCEPTS_EXCHANGE : 0;
    header->reader = settings->reader;
    header->readers = settings->readers;
    supply__position_request(&settings->start, header);
}

supply_status_t supply__mapped_file_check_whole(const struct mapped_file *mapped, struct failure *failure) {
    struct stat now;
    /* Nobody else has a file without a name. */
    if (mapped->file.folder < 0 && mapped->ring_fd < 0) return SUPPLY_OK;
    size_t bytes = own_bytes(mapped);
    bool is_whole = fstat(mapped->file.fd, &now) != 0 || (size_t)now.st_size >= bytes;
    if (is_whole && mapped->ring_fd >= 0) {
        bytes = mapped->bytes;
        is_whole = fstat(mapped->ring_fd, &now) != 0 || (size_t)now.st_size >= bytes;
    }
    if (is_whole) return SUPPLY_OK;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(mapped->address, RING_OFFSET, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                            "the mapped file %s was cut while it was in use: out of memory", mapped->file.name->path);
    return supply__fail(
        failure, SUPPLY_ERROR_CONTRACT,
        "the mapped file %s was cut from %zu to %lld bytes while it was in use: no program may write to "
        "it. Start both sides again",
        mapped->file.name->path, bytes, (long long)now.st_size);
}

bool supply__mapped_file_remove(struct mapped_file *mapped) {
    if (mapped->address != NULL) munmap(mapped->address, mapped->bytes);
    free(mapped->wide_schema);
    if (mapped->ring_fd >= 0) close(mapped->ring_fd);
    const bool gone = supply__claim_remove(&mapped->file);
    *mapped = MAPPED_FILE_NONE;
    return gone;
}

#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fail_point.h"

/* Of the first attempt to reserve space. */
#define STEP_BYTES ((size_t)64 << 20)

static unsigned long long free_bytes(const struct mapped_file *mapped) {
    struct statvfs space;
    return fstatvfs(mapped->file.fd, &space) == 0 ? (unsigned long long)space.f_bavail * space.f_frsize : 0;
}

static supply_status_t fail_to_reserve(const struct mapped_file *mapped, int error, struct failure *failure) {
    const struct named_path *name = mapped->file.name;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        return supply_fail(failure, SUPPLY_ERROR_NO_SPACE,
                           "mapped file %s (%s): no space: %zu bytes are needed and %llu are free: set ring= (--ring) "
                           "or block= (--block) smaller, or choose a folder on another file system",
                           name->path, name->origin, mapped->bytes, free_bytes(mapped));
    errno = error;
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "mapped file %s (%s): %zu bytes cannot be reserved: %m",
                       name->path, name->origin, mapped->bytes);
}

/* A file above the limit of the process would end it by SIGXFSZ. */
static supply_status_t check_limit(const struct mapped_file *mapped, struct failure *failure) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || mapped->bytes <= limit.rlim_cur) return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_NO_SPACE,
                       "mapped file %s (%s): %zu bytes are needed and this process may write files of %llu: raise "
                       "ulimit -f, or set ring= (--ring) or block= (--block) smaller",
                       mapped->file.name->path, mapped->file.name->origin, mapped->bytes,
                       (unsigned long long)limit.rlim_cur);
}

static supply_status_t reserve(const struct mapped_file *mapped, struct failure *failure) {
    supply_status_t status = check_limit(mapped, failure);
    if (status != SUPPLY_OK) return status;
    /* The magic comes first: if this process dies, the file can be recognised as a rank's. */
    if (pwrite(mapped->file.fd, MAGIC, sizeof MAGIC - 1, 0) != sizeof MAGIC - 1)
        return fail_to_reserve(mapped, errno, failure);
    /* Steps would fill the file system, on tmpfs with the node's memory, before the last one fails. */
    if (mapped->bytes > free_bytes(mapped)) return fail_to_reserve(mapped, ENOSPC, failure);
    /* A kernel may undo a whole call when a signal interrupts it: so in steps, smaller ones after each signal. */
    size_t step = STEP_BYTES;
    for (size_t reserved = 0; reserved < mapped->bytes;) {
        if (step > mapped->bytes - reserved) step = mapped->bytes - reserved;
        const int error = posix_fallocate(mapped->file.fd, (off_t)reserved, (off_t)step);
        if (error == 0)
            reserved += step;
        else if (error == EINTR)
            step = step > BLOCK_BYTES_UNIT ? step / 2 : step;
        else
            return fail_to_reserve(mapped, error, failure);
    }
    return SUPPLY_OK;
}

static supply_status_t map(struct mapped_file *mapped, struct failure *failure) {
    /* By a descriptor of its own: in a forked child the mapping must not keep the lock of the claimed one. */
    const int fd = supply_claim_reopen(&mapped->file, O_RDWR);
    void *address = fd < 0 ? MAP_FAILED : mmap(NULL, mapped->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    if (address == MAP_FAILED)
        return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "mapped file %s (%s): %zu bytes cannot be mapped: %m",
                           mapped->file.name->path, mapped->file.name->origin, mapped->bytes);
    mapped->address = address;
    /* Only the task writes there. A program that writes is stopped at once, and not by a broken block later. */
    if (mprotect(mapped->address + SCHEMA_OFFSET, mapped->bytes - SCHEMA_OFFSET, PROT_READ) != 0)
        return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "mapped file %s (%s) cannot be protected: %m",
                           mapped->file.name->path, mapped->file.name->origin);
    return SUPPLY_OK;
}

supply_status_t supply_mapped_file_create(struct mapped_file *mapped, const struct settings *settings,
                                          struct failure *failure) {
    *mapped = MAPPED_FILE_NONE;
    supply_status_t status =
        supply_claim(&mapped->file, FILE_MAPPED, &settings->files.mapped_file, settings->group, failure);
    if (status != SUPPLY_OK) return status;
    supply_fail_point("O1");
    mapped->bytes = RING_OFFSET + settings->block_bytes * settings->block_count;
    status = reserve(mapped, failure);
    supply_fail_point("O2");
    if (status == SUPPLY_OK) status = map(mapped, failure);
    if (status != SUPPLY_OK) supply_mapped_file_remove(mapped);
    return status;
}

void supply_mapped_file_fill(const struct mapped_file *mapped, const struct settings *settings) {
    struct mapped_file_header *header = supply_mapped_header(mapped);
    memcpy(header->magic, MAGIC, sizeof header->magic);
    header->byte_order = BYTE_ORDER_MARK;
    header->generation = settings->generation;
    header->file_bytes = mapped->bytes;
    header->ring_offset = RING_OFFSET;
    header->block_bytes = settings->block_bytes;
    header->block_count = settings->block_count;
    header->rank_pid = settings->rank_pid;
    header->rank = settings->rank;
    header->local_rank = settings->local_rank;
    supply_position_request(&settings->start, header);
}

bool supply_mapped_file_remove(struct mapped_file *mapped) {
    if (mapped->address != NULL) munmap(mapped->address, mapped->bytes);
    const bool gone = supply_claim_remove(&mapped->file);
    *mapped = MAPPED_FILE_NONE;
    return gone;
}

/**
 * How a reader joins the ring of reader 0 ("Readers of one ring" of PROTOCOL.md): by that one's mapped file, which it
 * opens for reading and checks as a task does. It runs in the thread that opens, without a lock: nobody can attach to
 * the group before this reader has joined.
 */
#include "pair/mapped_file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "base/wait.h"
#include "files/folder.h"
#include "layout.h"

#define LOOK_SECONDS 0.005

static const char absent[] = "has not opened it: do all ranks of the group run, with the same SUPPLY_SHARE?";
static const char dead[] = "is dead, and no new one has opened it";
static const char supplied[] =
    "has been supplied already, and a reader cannot join later: start all ranks of the group again together";

__attribute__((format(printf, 4, 5))) static supply_status_t
ring_fail(const struct settings *settings, struct failure *failure, supply_status_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    supply__fail_at(failure, status, "the ring of reader 0,", &settings->ring_file, NULL, format, arguments);
    va_end(arguments);
    return status;
}

/* A descriptor; -1: there is no such file, or status is not SUPPLY_OK. */
static int open_first(const struct settings *settings, supply_status_t *status, struct failure *failure) {
    int folder, fd = -1;
    *status = supply__folder_find(&folder, "mapped file", &settings->ring_file, failure);
    if (*status != SUPPLY_OK || folder < 0) return -1;
    struct stat entry;
    fd = supply__open_regular(folder, supply__folder_name(&settings->ring_file));
    if (fd < 0 && errno != ENOENT)
        *status = ring_fail(settings, failure, SUPPLY_ERROR_CONFIG, "cannot be opened: %m");
    else if (fd >= 0 && (fstat(fd, &entry) != 0 || entry.st_uid != geteuid())) {
        *status = ring_fail(settings, failure, SUPPLY_ERROR_CONFIG, "belongs to another user than this rank");
        close(fd);
        fd = -1;
    }
    close(folder);
    return fd;
}

static supply_status_t check_header(const struct settings *settings, int fd, const struct mapped_file_header *header,
                                    struct failure *failure) {
    struct stat entry;
    if (memcmp(header->magic, MAGIC, sizeof header->magic) != 0)
        return ring_fail(settings, failure, SUPPLY_ERROR_CONTRACT, "is not a mapped file of a rank");
    if (header->version != VERSION)
        return ring_fail(settings, failure, SUPPLY_ERROR_CONTRACT, "has contract %u.%u, and this libsupply %u.%u",
                         header->version >> 16, header->version & 0xffff, VERSION_MAJOR, VERSION_MINOR);
    if (header->readers != settings->readers || header->reader != 0)
        return ring_fail(
            settings, failure, SUPPLY_ERROR_CONFIG,
            "is of reader %u of %u, and this rank is reader %u of %u: give all ranks the same SUPPLY_SHARE",
            header->reader, header->readers, settings->reader, settings->readers);
    const uint64_t block = header->block_bytes, count = header->block_count;
    if (header->byte_order != BYTE_ORDER_MARK || header->generation == 0 || header->ring_offset != RING_OFFSET ||
        block == 0 || block > BLOCK_BYTES_MAX || block % BLOCK_BYTES_UNIT != 0 || count < BLOCK_COUNT_MIN ||
        header->file_bytes != RING_OFFSET + block * count || fstat(fd, &entry) != 0 ||
        (uint64_t)entry.st_size < header->file_bytes)
        return ring_fail(settings, failure, SUPPLY_ERROR_CONTRACT,
                         "has a header that contradicts itself or the size of the file");
    return SUPPLY_OK;
}

/* SUPPLY_AGAIN: reader 0 cannot be joined yet, and obstacle says why. */
static supply_status_t look(struct settings *settings, int fd, const char **obstacle, struct failure *failure) {
    struct mapped_file_header header;
    *obstacle = absent;
    /* The version is stored last, so what a second read finds is whole. */
    for (int reads = 0; reads < 2; reads++)
        if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header || header.version == 0) return SUPPLY_AGAIN;
    *obstacle = dead;
    if (!supply__file_is_locked(fd, F_RDLCK, RANK_LOCK_BYTE)) return SUPPLY_AGAIN;
    TRY(check_header(settings, fd, &header, failure));
    *obstacle = supplied;
    if (header.attachments != 0) return SUPPLY_AGAIN;
    settings->generation = header.generation;
    settings->block_bytes = header.block_bytes;
    settings->block_count = header.block_count;
    return SUPPLY_OK;
}

supply_status_t supply__ring_join(int *ring_fd, struct settings *settings, struct failure *failure) {
    struct wait wait =
        supply__wait_begin_slow((struct wait_limit){settings->timeout, settings->interruption}, LOOK_SECONDS);
    for (;;) {
        const char *obstacle = absent;
        supply_status_t status;
        const int fd = open_first(settings, &status, failure);
        if (fd >= 0) status = look(settings, fd, &obstacle, failure);
        if (fd >= 0 && status == SUPPLY_OK) {
            *ring_fd = fd;
            return SUPPLY_OK;
        }
        if (fd >= 0) close(fd);
        if (status != SUPPLY_OK && status != SUPPLY_AGAIN) return status;
        status = supply__wait_more(&wait);
        if (status == SUPPLY_ERROR_TIMEOUT)
            return ring_fail(settings, failure, status, "%s (waited %g s; --timeout / SUPPLY_TIMEOUT)", obstacle,
                             settings->timeout);
        if (status == SUPPLY_INTERRUPTED)
            return ring_fail(settings, failure, status, "was not joined: the wait was interrupted");
        if (status != SUPPLY_OK) return ring_fail(settings, failure, status, "cannot be waited for: %m");
    }
}

#include "diagnose_memory.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "existing_folder.h"
#include "file_space.h"
#include "memory_limit.h"

#define SHMEM_HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

static const char more_space[] =
    "set ring= or block= smaller in mapped-files.conf, remove stale pairs (supply-clean), or enlarge the file system: "
    "mount -o remount,size=SIZE, in a container --shm-size=SIZE";

static double megabytes(uint64_t bytes) { return (double)bytes / 1e6; }

static uint64_t sum(const struct mapped_file_need *needs, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += needs[i].bytes;
    return bytes;
}

static void check_space(struct diagnosis *diagnosis, const char *folder, uint64_t needed, size_t pairs) {
    struct statvfs space;
    struct statfs type;
    if (statvfs(folder, &space) != 0 || statfs(folder, &type) != 0) {
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "space", "choose another folder", "%s: cannot be examined: %m",
                         folder);
        return;
    }
    const uint64_t available = supply_space_free(&space);
    const bool fits = needed <= available;
    char what[64] = "the file system has no limit";
    if (available != SPACE_WITHOUT_LIMIT) snprintf(what, sizeof what, "%.1f are free", megabytes(available));
    if (type.f_type != TMPFS_MAGIC && type.f_type != RAMFS_MAGIC)
        diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "space",
                         "set paths in /dev/shm, or in another tmpfs, in mapped-files.conf",
                         "%s is not on a tmpfs: the kernel also writes the mapped files to a disk", folder);
    diagnosis_report(diagnosis, fits ? DIAGNOSIS_OK : DIAGNOSIS_FAILED, "space", fits ? NULL : more_space,
                     "%s: %.1f MB are needed for %zu pair%s, and %s", folder, megabytes(needed), pairs,
                     pairs == 1 ? "" : "s", what);
}

static dev_t file_system(const char *folder) {
    struct stat entry;
    return stat(folder, &entry) == 0 ? entry.st_dev : 0;
}

/* One check for each file system. */
static void check_file_systems(struct diagnosis *diagnosis, const struct mapped_file_need *needs, size_t count) {
    char folder[PATH_MAX], other[PATH_MAX];
    for (size_t i = 0; i < count; i++) {
        existing_folder(needs[i].line->mapped_file.path, folder);
        const dev_t device = file_system(folder);
        uint64_t bytes = 0;
        size_t pairs = 0;
        bool reported = false;
        for (size_t j = 0; j < count && !reported; j++) {
            existing_folder(needs[j].line->mapped_file.path, other);
            if (file_system(other) != device) continue;
            reported = j < i;
            bytes += needs[j].bytes;
            pairs++;
        }
        if (!reported) check_space(diagnosis, folder, bytes, pairs);
    }
}

/* "MemAvailable:  22018244 kB" */
static uint64_t available_memory(void) {
    FILE *stream = fopen("/proc/meminfo", "re");
    char line[256];
    uint64_t kilobytes = 0;
    while (stream != NULL && kilobytes == 0 && fgets(line, sizeof line, stream) != NULL)
        if (sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) != 1) kilobytes = 0;
    if (stream != NULL) fclose(stream);
    return kilobytes * 1024;
}

static void check_memory(struct diagnosis *diagnosis, uint64_t needed) {
    const uint64_t available = available_memory();
    if (available == 0) {
        diagnosis_report(diagnosis, DIAGNOSIS_SKIPPED, "memory", NULL,
                         "/proc/meminfo does not say how much is available");
        return;
    }
    const bool fits = needed <= available;
    diagnosis_report(diagnosis, fits ? DIAGNOSIS_OK : DIAGNOSIS_WARNING, "memory",
                     fits ? NULL : "set ring= or block= smaller, or stop programs that use memory",
                     "%.1f MB are needed, and %.1f are available", megabytes(needed), megabytes(available));
}

static void check_container(struct diagnosis *diagnosis, uint64_t needed) {
    static const char fix[] =
        "raise the container's limit, or set ring= or block= smaller: the kernel charges the pages of a mapped file to "
        "the container that touches them first, which is the rank's";
    struct memory_limit limit;
    memory_limit_read(&limit, "");
    if (!limit.limited) {
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "container", NULL, "no memory limit");
        return;
    }
    const uint64_t left = limit.limit_bytes > limit.used_bytes ? limit.limit_bytes - limit.used_bytes : 0;
    const enum diagnosis_status status = needed > limit.limit_bytes ? DIAGNOSIS_FAILED
                                         : needed > left            ? DIAGNOSIS_WARNING
                                                                    : DIAGNOSIS_OK;
    diagnosis_report(diagnosis, status, "container", status == DIAGNOSIS_OK ? NULL : fix,
                     "%.1f MB are needed; the memory limit is %.1f, and %.1f of it are used (%s)", megabytes(needed),
                     megabytes(limit.limit_bytes), megabytes(limit.used_bytes), limit.place);
}

static void check_huge_pages(struct diagnosis *diagnosis) {
    char text[256] = "";
    FILE *stream = fopen(SHMEM_HUGE_PAGES, "re");
    const bool read = stream != NULL && fgets(text, sizeof text, stream) != NULL;
    if (stream != NULL) fclose(stream);
    const char *begin = strchr(text, '[');
    if (!read || begin == NULL) {
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "huge pages", NULL,
                         "this kernel has none for shared memory; none are needed");
        return;
    }
    const int length = (int)strcspn(begin + 1, "]");
    const bool rounded =
        strncmp(begin + 1, "always", (size_t)length) == 0 || strncmp(begin + 1, "force", (size_t)length) == 0;
    diagnosis_report(diagnosis, DIAGNOSIS_OK, "huge pages", NULL, "shmem_enabled is %.*s: %s", length, begin + 1,
                     rounded
                         ? "a mapped file takes whole huge pages, up to 2 MiB more than its ring"
                         : "pages of the usual size, unless the file system is mounted with huge=; none are needed");
}

void diagnose_memory(struct diagnosis *diagnosis, const struct mapped_file_need *needs, size_t count) {
    check_file_systems(diagnosis, needs, count);
    check_memory(diagnosis, sum(needs, count));
    check_container(diagnosis, sum(needs, count));
    check_huge_pages(diagnosis);
}

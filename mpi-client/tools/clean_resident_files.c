#include "clean_resident_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_lock.h"
#include "folder.h"
#include "layout.h"

#define RESIDENT_SUFFIX ".resident"
#define UNSEALED_RESIDENT_SUFFIX RESIDENT_SUFFIX ".unsealed"

static supply_status_t fail(const char *path, supply_status_t status, const char *why, struct failure *failure) {
    return supply_fail(failure, status, "resident file %s (--resident-folder) %s", path, why);
}

static bool is_alive(uint32_t pid) { return pid != 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM); }

/* A file without contents is one whose task died before it wrote the header. */
static supply_status_t check_unused(int fd, const char *path, struct failure *failure) {
    struct stat found;
    struct mapped_file_header header = {0};
    if (fstat(fd, &found) != 0) return fail(path, SUPPLY_ERROR_SYSTEM, "cannot be examined", failure);
    if (!S_ISREG(found.st_mode) || found.st_uid != geteuid())
        return fail(path, SUPPLY_ERROR_CONFIG, "is not a regular file of this user: remove it by hand", failure);
    const ssize_t got = pread(fd, &header, sizeof header, 0);
    if (got != 0 && (got != sizeof header || memcmp(header.magic, BLOCK_FILE_MAGIC, sizeof header.magic) != 0 ||
                     header.file_use != FILE_USE_RESIDENT))
        return fail(path, SUPPLY_ERROR_CONFIG, "was not made by Spark: remove it by hand", failure);
    if (is_alive(header.task_pid))
        return supply_fail(failure, SUPPLY_ERROR_IN_USE,
                           "resident file %s (--resident-folder) belongs to process %u of Spark, which is alive: end "
                           "Spark",
                           path, header.task_pid);
    if (supply_file_is_locked(fd, F_WRLCK, READER_LOCK_BYTE))
        return fail(path, SUPPLY_ERROR_IN_USE, "is read by a rank: end that rank", failure);
    return SUPPLY_OK;
}

static bool is_still(int folder, const char *name, int fd) {
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Opens the file for reading only: an open for writing would break a rank's lease. */
static supply_status_t clean_in_folder(int folder, const struct named_path *file, bool dry_run,
                                       struct failure *failure) {
    const char *name = supply_folder_name(file);
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return SUPPLY_OK;
    if (fd < 0) return fail(file->path, SUPPLY_ERROR_SYSTEM, "cannot be opened: remove it by hand", failure);
    supply_status_t status = check_unused(fd, file->path, failure);
    if (status == SUPPLY_OK && !dry_run && is_still(folder, name, fd) && unlinkat(folder, name, 0) != 0)
        status = fail(file->path, SUPPLY_ERROR_SYSTEM, "cannot be removed: remove it by hand", failure);
    close(fd);
    if (status == SUPPLY_OK) puts(file->path);
    return status;
}

static supply_status_t clean(const struct named_path *file, bool dry_run, struct failure *failure) {
    int folder = -1;
    supply_status_t status = supply_folder_find(&folder, "resident file", file, failure);
    if (status == SUPPLY_OK && folder >= 0) status = clean_in_folder(folder, file, dry_run, failure);
    if (folder >= 0) close(folder);
    return status;
}

bool clean_resident_files(const struct config_line *line, const struct cleaning *cleaning) {
    static const char *const suffixes[] = {RESIDENT_SUFFIX, UNSEALED_RESIDENT_SUFFIX};
    bool cleaned = true;
    if (cleaning->resident_folder == NULL) return true;
    for (int i = 0; i < 2; i++) {
        struct failure failure;
        struct named_path file = {.origin = "--resident-folder"};
        const char *name = supply_folder_name(&line->mapped_file);
        if (asprintf(&file.path, "%s/%s%s", cleaning->resident_folder, name, suffixes[i]) < 0) file.path = NULL;
        const supply_status_t status = file.path == NULL ? supply_fail(&failure, SUPPLY_ERROR_MEMORY, "out of memory")
                                                         : clean(&file, cleaning->dry_run, &failure);
        if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", cleaning->tool, failure.text);
        free(file.path);
        cleaned &= status == SUPPLY_OK;
    }
    return cleaned;
}

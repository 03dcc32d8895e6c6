/** Finds the resident files of a pair by their names, and removes those that nobody uses: their locks tell. */
#include "clean_resident_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "files/folder.h"
#include "layout.h"

/* FNV-1a of 64 bits: pairs of different folders may have mapped files of the same name. */
static uint64_t hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
    return hash;
}

char *resident_file_path(const char *folder, const struct named_path *mapped_file, const char *suffix) {
    char *path;
    const int length = asprintf(&path, "%s/%s.%016" PRIx64 "%s", folder, supply__folder_name(mapped_file),
                                hash(mapped_file->path), suffix);
    return length < 0 ? NULL : path;
}

#define RESIDENT_FILE "resident file %s "

/*
 * The file's owner need not be the pair's: another user of the pair's group can only test the rank's lock.
 * A test for a shared lock hinders no rank.
 */
static supply_status_t check_rank_is_dead(const char *path, const struct named_path *mapped_file,
                                          struct failure *failure) {
    const int fd = supply__open_regular(AT_FDCWD, mapped_file->path);
    if (fd < 0 && errno == ENOENT) return SUPPLY_OK;
    if (fd < 0)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM,
                            RESIDENT_FILE "may be in use: mapped file %s (%s) cannot be opened to see whether its rank "
                                          "is alive: %m: have the user of the mapped file run supply-clean first, or "
                                          "remove the resident file by hand",
                            path, mapped_file->path, mapped_file->origin);
    const bool is_alive = supply__file_is_locked(fd, F_RDLCK, RANK_LOCK_BYTE);
    close(fd);
    return is_alive ? supply__fail(failure, SUPPLY_ERROR_IN_USE,
                                   RESIDENT_FILE "belongs to mapped file %s (%s), whose rank is alive: end that rank",
                                   path, mapped_file->path, mapped_file->origin)
                    : SUPPLY_OK;
}

static supply_status_t check_owner(const char *path, const struct stat *found, struct failure *failure) {
    char owner[USER_TEXT_BYTES];
    if (found->st_uid == geteuid()) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                        RESIDENT_FILE "belongs to another user, %s: have that user run supply-clean", path,
                        supply__user_text(found->st_uid, owner));
}

/* A file without contents is one whose task died before it wrote the header. */
static supply_status_t resident_check_unused(int fd, const char *path, struct failure *failure) {
    struct stat found;
    struct mapped_file_header header = {0};
    if (fstat(fd, &found) != 0)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, RESIDENT_FILE "cannot be examined: %m", path);
    TRY(check_owner(path, &found, failure));
    const ssize_t got = pread(fd, &header, sizeof header, 0);
    if (got != 0 && (got != sizeof header || memcmp(header.magic, BLOCK_FILE_MAGIC, sizeof header.magic) != 0 ||
                     header.file_use != FILE_USE_RESIDENT))
        return supply__fail(failure, SUPPLY_ERROR_CONFIG, RESIDENT_FILE "was not made by Spark: remove it by hand",
                            path);
    if (supply__file_is_locked(fd, F_WRLCK, READER_LOCK_BYTE))
        return supply__fail(failure, SUPPLY_ERROR_IN_USE, RESIDENT_FILE "is read by a rank: end that rank", path);
    return SUPPLY_OK;
}

/* Only the file that was checked is removed. The name may lead to that of a new run by now. */
static supply_status_t remove_checked(int folder, const char *path, int fd, struct failure *failure) {
    const char *name = strrchr(path, '/') + 1;
    struct stat opened;
    if (fstat(fd, &opened) != 0 || !supply__folder_has(folder, name, opened.st_dev, opened.st_ino))
        return supply__fail(
            failure, SUPPLY_ERROR_IN_USE,
            RESIDENT_FILE "has just been removed or replaced by another process: run supply-clean again", path);
    if (unlinkat(folder, name, 0) != 0)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, RESIDENT_FILE "cannot be removed: %m: remove it by hand",
                            path);
    return SUPPLY_OK;
}

/* Opens the file for reading only: an open for writing would break a rank's lease. */
static supply_status_t clean_in_folder(int folder, const char *path, bool dry_run, struct failure *failure) {
    const int fd = supply__open_regular(folder, strrchr(path, '/') + 1);
    if (fd < 0)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, RESIDENT_FILE "cannot be opened: %m: remove it by hand",
                            path);
    supply_status_t status = resident_check_unused(fd, path, failure);
    if (status == SUPPLY_OK && !dry_run) status = remove_checked(folder, path, fd, failure);
    close(fd);
    if (status == SUPPLY_OK) puts(path);
    return status;
}

static supply_status_t resident_clean_file(const struct named_path *file, const struct named_path *mapped_file,
                                           bool dry_run, struct failure *failure) {
    struct stat found;
    int folder = -1;
    const bool is_found = lstat(file->path, &found) == 0;
    if (!is_found && errno == ENOENT) return SUPPLY_OK;
    supply_status_t status = is_found ? check_owner(file->path, &found, failure) : SUPPLY_OK;
    if (status == SUPPLY_OK) status = supply__folder_find(&folder, "resident file", file, failure);
    if (status == SUPPLY_OK) status = check_rank_is_dead(file->path, mapped_file, failure);
    if (status == SUPPLY_OK && folder >= 0) status = clean_in_folder(folder, file->path, dry_run, failure);
    if (folder >= 0) close(folder);
    return status;
}

static bool clean_folder(const char *path, const char *origin, const struct named_path *mapped_file,
                         const struct cleaning *cleaning) {
    static const char *const suffixes[] = {RESIDENT_SUFFIX, UNSEALED_RESIDENT_SUFFIX};
    bool cleaned = true;
    for (int i = 0; i < 2; i++) {
        struct failure failure;
        struct named_path file = {.path = path == NULL ? NULL : resident_file_path(path, mapped_file, suffixes[i]),
                                  .origin = (char *)origin};
        const supply_status_t status = file.path == NULL
                                           ? supply__fail(&failure, SUPPLY_ERROR_MEMORY, "out of memory")
                                           : resident_clean_file(&file, mapped_file, cleaning->dry_run, &failure);
        if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", cleaning->tool, failure.text);
        free(file.path);
        cleaned &= status == SUPPLY_OK;
    }
    return cleaned;
}

bool clean_resident_files(const struct config_line *line, const struct cleaning *cleaning) {
    const struct named_path *mapped_file = &line->mapped_file;
    char *beside = strndup(mapped_file->path, (size_t)(supply__folder_name(mapped_file) - mapped_file->path - 1));
    bool cleaned = clean_folder(beside, mapped_file->origin, mapped_file, cleaning);
    free(beside);
    if (cleaning->resident_folder != NULL)
        cleaned &= clean_folder(cleaning->resident_folder, "--resident-folder", mapped_file, cleaning);
    return cleaned;
}

#include "clean_results.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "claimed_file.h"
#include "file_lock.h"
#include "folder.h"
#include "layout.h"
#include "result_names.h"

/* A process id of another PID namespace, such as another container's, says nothing here. */
static bool can_judge(const struct mapped_file_header *header) {
    struct stat own;
    return stat("/proc/self/ns/pid", &own) == 0 && header->task_namespace == (uint32_t)own.st_ino;
}

/*
 * A sealed result is Spark's: of its readers, and of the executor that fed the rank. The lock keeps readers out until
 * the file is closed.
 */
static supply_status_t check_unused(const struct claimed_file *file, const struct cleaning *cleaning,
                                    struct failure *failure) {
    struct mapped_file_header header;
    if (supply_file_lock(file->fd, F_WRLCK, READER_LOCK_BYTE) != 0)
        return supply_fail(failure, SUPPLY_ERROR_IN_USE,
                           "result %s (%s) is read by Spark: release it there (supply.spark.release), or end Spark",
                           file->name->path, file->name->origin);
    const ssize_t got = pread(file->fd, &header, sizeof header, 0);
    const bool is_used = got == sizeof header && header.sealed == SEALED_COMPLETE && header.task_pid != 0;
    if (!is_used || cleaning->unread_results) return SUPPLY_OK;
    if (!can_judge(&header))
        return supply_fail(failure, SUPPLY_ERROR_IN_USE,
                           "result %s (%s) belongs to process %u of Spark in another container, or PID namespace, and "
                           "may live: run supply-clean there, release it in Spark (supply.spark.release), or say that "
                           "nobody will read it (--unread-results)",
                           file->name->path, file->name->origin, header.task_pid);
    if ((kill((pid_t)header.task_pid, 0) == 0 || errno == EPERM))
        return supply_fail(failure, SUPPLY_ERROR_IN_USE,
                           "result %s (%s) belongs to process %u of Spark, which is alive: release it there "
                           "(supply.spark.release), or end Spark",
                           file->name->path, file->name->origin, header.task_pid);
    return SUPPLY_OK;
}

static supply_status_t clean(const struct named_path *path, const struct cleaning *cleaning, struct failure *failure) {
    struct claimed_file file;
    if (cleaning->keep_results && supply_result_is_sealed(path)) return SUPPLY_OK;
    supply_status_t status = supply_claim_stale(&file, FILE_RESULT, path, failure);
    if (status != SUPPLY_OK) return status;
    const bool exists = file.fd >= 0;
    if (exists && supply_result_is_sealed(path)) status = check_unused(&file, cleaning, failure);
    if (status == SUPPLY_OK && !cleaning->dry_run && !supply_claim_remove(&file))
        status = supply_fail(failure, SUPPLY_ERROR_SYSTEM, "result %s (%s) cannot be removed: %m: remove it by hand",
                             path->path, path->origin);
    supply_claim_close(&file);
    if (status == SUPPLY_OK && exists) puts(path->path);
    return status;
}

static bool report(const struct cleaning *cleaning, supply_status_t status, const struct failure *failure) {
    if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", cleaning->tool, failure->text);
    return status == SUPPLY_OK;
}

bool clean_results(const struct config_line *line, const struct cleaning *cleaning) {
    struct named_path folder = {0};
    struct result_files files = {0};
    struct failure failure;
    supply_status_t status = supply_results_folder(cleaning->results_folder, &line->mapped_file, &folder, &failure);
    if (status == SUPPLY_OK)
        status = supply_result_files_find(&folder, supply_folder_name(&line->mapped_file), &files, &failure);
    bool cleaned = report(cleaning, status, &failure);
    for (size_t i = 0; i < files.count; i++)
        cleaned &= report(cleaning, clean(&files.paths[i], cleaning, &failure), &failure);
    supply_result_files_free(&files);
    free(folder.path);
    free(folder.origin);
    return cleaned;
}

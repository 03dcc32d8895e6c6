#include "old_results.h"

#include "claimed_file.h"
#include "folder.h"
#include "result_names.h"

static supply_status_t remove_one(const struct named_path *path, struct failure *failure) {
    struct claimed_file file;
    const supply_status_t status = supply_claim_stale(&file, FILE_RESULT, path, failure);
    if (status != SUPPLY_OK || supply_claim_remove(&file)) return status;
    return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "result %s (%s) of an earlier run cannot be removed: %m",
                       path->path, path->origin);
}

static supply_status_t remove_listed(const struct settings *settings, bool sealed, struct failure *failure) {
    struct result_files files;
    supply_status_t status = supply_result_files_find(
        &settings->results_folder, supply_folder_name(&settings->files.mapped_file), &files, failure);
    for (size_t i = 0; i < files.count && status == SUPPLY_OK; i++)
        if (supply_result_is_sealed(&files.paths[i]) == sealed) status = remove_one(&files.paths[i], failure);
    supply_result_files_free(&files);
    return status;
}

supply_status_t supply_old_results_remove(const struct settings *settings, struct failure *failure) {
    /* A rank that has closed its pair may seal a result between two lists. */
    const supply_status_t status = remove_listed(settings, false, failure);
    return status == SUPPLY_OK ? remove_listed(settings, true, failure) : status;
}

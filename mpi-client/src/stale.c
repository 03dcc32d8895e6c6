#include "stale.h"

#include "claimed_file.h"
#include "options.h"

/* Locks all files before one is removed: a living pair stays whole. */
static supply_status_t claim_all(const struct config_line *files, struct claimed_file claimed[3],
                                 struct failure *failure) {
    const struct named_path *names[] = {&files->mapped_file, &files->request_pipe, &files->notification_pipe};
    for (int i = 0; i < 3; i++) claimed[i] = CLAIMED_FILE_NONE;
    supply_status_t status = SUPPLY_OK;
    for (int i = 0; i < 3 && status == SUPPLY_OK; i++)
        status = supply_claim_stale(&claimed[i], (enum file_kind)i, names[i], failure);
    return status;
}

static void close_all(struct claimed_file claimed[3]) {
    for (int i = 0; i < 3; i++) supply_claim_close(&claimed[i]);
}

supply_status_t supply_stale_find(const struct config_line *files, struct stale_files *stale, struct failure *failure) {
    struct claimed_file claimed[3];
    supply_status_t status = claim_all(files, claimed, failure);
    for (int i = 0; i < 3; i++) stale->left[i] = status == SUPPLY_OK && claimed[i].fd >= 0;
    close_all(claimed);
    return status;
}

supply_status_t supply_stale_remove(const struct config_line *files, struct stale_files *stale,
                                    struct failure *failure) {
    *stale = (struct stale_files){0};
    struct claimed_file claimed[3];
    supply_status_t status = claim_all(files, claimed, failure);
    for (int i = 0; i < 3 && status == SUPPLY_OK; i++) {
        if (claimed[i].fd < 0) continue;
        stale->left[i] = supply_claim_remove(&claimed[i]);
        if (!stale->left[i])
            status =
                supply_fail(failure, SUPPLY_ERROR_SYSTEM, "%s %s (%s) cannot be removed: %m: remove it by hand",
                            supply_file_kind_name((enum file_kind)i), claimed[i].name->path, claimed[i].name->origin);
    }
    close_all(claimed);
    return status;
}

supply_status_t supply_remove_stale(const supply_options_t *options, char *error, size_t error_bytes) {
    struct settings settings;
    struct stale_files stale;
    struct failure failure = {0};
    supply_status_t status = supply_settings_files(options, &settings, &failure);
    if (status == SUPPLY_OK) status = supply_stale_remove(&settings.files, &stale, &failure);
    supply_settings_free(&settings);
    if (error != NULL && error_bytes > 0) supply_copy_line(error, error_bytes, failure.text, sizeof failure.text);
    return status;
}

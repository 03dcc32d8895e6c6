/** supply_remove_stale(): what a dead rank left behind. */
#include "claimed_file.h"
#include "options.h"

static supply_status_t remove_files(const struct config_line *files, struct failure *failure) {
    const struct named_path *names[] = {&files->mapped_file, &files->request_pipe, &files->notification_pipe};
    struct claimed_file claimed[] = {CLAIMED_FILE_NONE, CLAIMED_FILE_NONE, CLAIMED_FILE_NONE};
    supply_status_t status = SUPPLY_OK;
    /* All are locked before one is removed: a pair that lives is left whole. */
    for (int i = 0; i < 3 && status == SUPPLY_OK; i++)
        status = supply_claim_stale(&claimed[i], (enum file_kind)i, names[i], failure);
    for (int i = 0; i < 3; i++) {
        if (status == SUPPLY_OK) supply_claim_remove(&claimed[i]);
        else supply_claim_close(&claimed[i]);
    }
    return status;
}

supply_status_t supply_remove_stale(const supply_options_t *options, char *error, size_t error_bytes) {
    supply_options_t defaults;
    supply_options_init(&defaults);
    struct settings settings;
    struct failure failure = {0};
    supply_status_t status = supply_settings_files(options ? options : &defaults, &settings, &failure);
    if (status == SUPPLY_OK) status = remove_files(&settings.files, &failure);
    supply_settings_free(&settings);
    if (error != NULL && error_bytes > 0) supply_copy_line(error, error_bytes, failure.text, sizeof failure.text);
    return status;
}

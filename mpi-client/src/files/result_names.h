/** FOLDER/PAIR.NAME.result: the names of a pair's results, and the files of those that are there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "files/config_files.h"
#include "files/options.h"

#define RESULT_SUFFIX ".result"
#define UNSEALED_SUFFIX ".unsealed"
#define RESULT_NAME_MAX 64

/** Whether a result may have that name: 1 to 64 of the characters A-Z a-z 0-9 _ -. */
bool supply__result_name_is_valid(const char *name);

/**
 * The folder of a pair's results: `given` (may be NULL), else that of the environment, else that of the mapped file.
 * The caller frees both texts in any case. SUPPLY_OK, or _CONFIG, _MEMORY.
 */
supply_status_t supply__results_folder(const char *given, const struct named_path *mapped_file,
                                       struct named_path *folder, struct failure *failure);

/** Whether a file of a result has its sealed name. */
bool supply__result_is_sealed(const struct named_path *path);

/** Paths of files, each with the origin of its folder. Free it with supply__result_files_free(). */
struct result_files {
    struct named_path *paths;
    size_t count;
};

/**
 * Finds the files of the pair's results in the folder, sealed or not. pair_name: of the mapped file, without its
 * folder. A folder that is missing has none. SUPPLY_OK, or _SYSTEM, _MEMORY. Free *files in any case.
 */
supply_status_t supply__result_files_find(const struct named_path *folder, const char *pair_name,
                                          struct result_files *files, struct failure *failure);
void supply__result_files_free(struct result_files *files);

/* O1: the results that earlier runs of a pair left. */

/** Removes them, sealed or not. SUPPLY_OK, or _IN_USE (a living process writes one), _CONFIG, _SYSTEM, _MEMORY. */
supply_status_t supply__old_results_remove(const struct settings *settings, struct failure *failure);

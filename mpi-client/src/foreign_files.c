#include "foreign_files.h"

#include <string.h>

static bool is_open(const struct foreign_files *files, uint32_t index) { return files->opened >> index & 1; }

supply_status_t supply_foreign_files_find(struct foreign_files *files, const struct mapped_file_header *header,
                                          uint32_t number, const struct foreign_use *use,
                                          const struct foreign_file_mapping **found, struct failure *failure) {
    /* The task stores the count last, with release: entries below it are whole. */
    const uint32_t count = __atomic_load_n(&header->foreign_count, __ATOMIC_ACQUIRE);
    if (count > FOREIGN_FILES_MAX)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "foreign_count is %u, must be at most %d", count,
                           FOREIGN_FILES_MAX);
    if (number == 0 || number > count)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s is %u, must be from 1 to foreign_count, %u", use->field,
                           number, count);
    const uint32_t index = number - 1;
    *found = &files->files[index];
    if (is_open(files, index)) return SUPPLY_OK;
    struct foreign_file entry;
    memcpy(&entry, (const uint8_t *)header + FOREIGN_FILES_OFFSET + index * sizeof entry, sizeof entry);
    supply_status_t status = supply_foreign_file_open(&files->files[index], &entry, use, files->group, failure);
    if (status == SUPPLY_OK) files->opened |= 1u << index;
    return status;
}

supply_status_t supply_foreign_files_check(const struct foreign_files *files, struct failure *failure) {
    supply_status_t status = SUPPLY_OK;
    for (uint32_t i = 0; i < FOREIGN_FILES_MAX && status == SUPPLY_OK; i++)
        if (is_open(files, i)) status = supply_foreign_file_check(&files->files[i], failure);
    return status;
}

void supply_foreign_files_abandon(struct foreign_files *files) {
    for (uint32_t i = 0; i < FOREIGN_FILES_MAX; i++)
        if (is_open(files, i)) supply_foreign_file_close(&files->files[i]);
    files->opened = 0;
}

void supply_foreign_files_close(struct foreign_files *files, struct exported_mappings *mappings) {
    for (uint32_t i = 0; i < FOREIGN_FILES_MAX; i++) {
        if (!is_open(files, i)) continue;
        struct foreign_file_mapping *file = &files->files[i];
        supply_foreign_file_drop_lease(file);
        supply_foreign_file_close(file);
        mappings->list[mappings->count].address = (void *)file->address;
        mappings->list[mappings->count++].bytes = file->entry.file_bytes;
    }
    files->opened = 0;
}

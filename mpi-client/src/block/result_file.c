/**
 * W1 to W5: the block file of a result. Until W4 it has another name and is locked, so that nobody takes it for a whole
 * one. The thread that uses the result writes it; nothing is read back from it.
 */
#include "block/result_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail_point.h"
#include "base/file_lock.h"
#include "files/file_space.h"
#include "files/folder.h"
#include "files/options.h"
#include "files/result_names.h"

/* The header's fields after `sealed` are texts, and stay empty until W5. */
#define FIELDS_BYTES offsetof(struct mapped_file_header, task_failure)

static supply_status_t set_paths(struct result_file *result, const struct settings *settings, const char *name,
                                 struct failure *failure) {
    /* A rank elsewhere has no folder: the executor names the file. */
    const struct named_path *folder = result->link != NULL ? &settings->files.mapped_file : &settings->results_folder;
    const char *pair_name = supply__folder_name(&settings->files.mapped_file);
    result->sealed.origin = strdup(folder->origin);
    result->unsealed.origin = strdup(folder->origin);
    if (asprintf(&result->sealed.path, "%s/%s.%s" RESULT_SUFFIX, folder->path, pair_name, name) < 0)
        result->sealed.path = NULL;
    if (asprintf(&result->unsealed.path, "%s/%s.%s" RESULT_SUFFIX UNSEALED_SUFFIX, folder->path, pair_name, name) < 0)
        result->unsealed.path = NULL;
    if (result->sealed.path != NULL && result->unsealed.path != NULL && result->sealed.origin != NULL &&
        result->unsealed.origin != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/*
 * A pair has removed the results of earlier runs, so this one has sealed it. Without a pair it may be of another run.
 * Its readers may have it mapped.
 */
static supply_status_t check_not_sealed(const struct result_file *result, bool has_pair, const char *name,
                                        struct failure *failure) {
    struct stat entry;
    if (fstatat(result->file.folder, supply__folder_name(&result->sealed), &entry, AT_SYMLINK_NOFOLLOW) != 0)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                        "result %s (%s) is sealed, or was not made by this rank: give each result of a run a name of "
                        "its own, other than '%s'%s",
                        result->sealed.path, result->sealed.origin, name,
                        has_pair ? "" : "; or, if it is of an earlier run, remove it (supply-clean)");
}

static void result_file_fill(struct mapped_file_header *header, const struct settings *settings,
                             const struct pair *of_pair, const struct schema *schema) {
    const uint64_t ring_offset = supply__block_file_ring_offset(schema);
    *header = (struct mapped_file_header){
        .schema_columns = schema->count,
        .schema_bytes = supply__schema_is_wide(schema) ? (uint32_t)supply__schema_bytes(schema) : 0,
        .file_use = FILE_USE_RESULT,
    };
    if (of_pair != NULL) {
        const struct mapped_file_header *mapped = of_pair->mapped_file.header;
        header->task_pid = mapped->task_pid;
        header->task_namespace = mapped->task_namespace;
        header->run = mapped->run;
    }
    supply__header_fill(header, BLOCK_FILE_MAGIC, settings, ring_offset, ring_offset);
}

static supply_status_t write_fields(struct result_file *result, struct failure *failure) {
    return supply__space_write(&result->file, 0, &result->header, FIELDS_BYTES, failure);
}

static supply_status_t write_beginning(struct result_file *result, const struct schema *schema,
                                       struct failure *failure) {
    const struct claimed_file *file = &result->file;
    const uint32_t version = VERSION;
    const uint64_t at = supply__schema_is_wide(schema) ? RING_OFFSET : SCHEMA_OFFSET;
    const uint64_t bytes = result->header.ring_offset;
    TRY(supply__space_begin(file, BLOCK_FILE_MAGIC, bytes, failure));
    supply__fail_point("W1");
    TRY(write_fields(result, failure));
    TRY(supply__space_write(file, at, schema->entries, supply__schema_bytes(schema), failure));
    result->header.version = version;
    TRY(supply__space_write(file, offsetof(struct mapped_file_header, version), &version, sizeof version, failure));
    supply__fail_point("W2");
    return SUPPLY_OK;
}

/* In memory, until it is sealed. */
static supply_status_t claim_for_link(struct result_file *result, struct failure *failure) {
    result->file.name = &result->unsealed;
    result->file.fd = supply__claim_unnamed(SCHEMA_OFFSET);
    if (result->file.fd >= 0) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "no memory for a result: %m");
}

supply_status_t supply__result_file_create(struct result_file *result, const struct settings *settings,
                                           const struct pair *of_pair, const char *name, const struct schema *schema,
                                           struct failure *failure) {
    *result = RESULT_FILE_NONE;
    result_file_fill(&result->header, settings, of_pair, schema);
    if (of_pair != NULL && of_pair->link != NULL) {
        snprintf(result->of_link.name, sizeof result->of_link.name, "%s", name);
        if (!supply__link_add(of_pair->link, &result->of_link))
            return supply__fail(failure, SUPPLY_ERROR_IN_USE,
                                "result %s of %s is in use by process %d, this rank itself: seal or abort it first",
                                name, of_pair->name, (int)getpid());
        result->link = of_pair->link;
        supply__link_hold_end(result->link);
    }
    supply_status_t status = supply__generation_make(&result->header.generation, failure);
    if (status == SUPPLY_OK) status = set_paths(result, settings, name, failure);
    if (status == SUPPLY_OK && result->link != NULL)
        status = claim_for_link(result, failure);
    else if (status == SUPPLY_OK) {
        status = supply__claim(&result->file, FILE_RESULT, &result->unsealed, settings->group, failure);
        if (status == SUPPLY_OK) status = check_not_sealed(result, of_pair != NULL, name, failure);
    }
    if (status == SUPPLY_OK) status = write_beginning(result, schema, failure);
    if (status == SUPPLY_OK) return status;
    supply__claim_remove(&result->file);
    supply__result_file_close(result);
    return status;
}

supply_status_t supply__result_file_write(struct result_file *result, struct notification *notification,
                                          struct iovec *pieces, int count, struct failure *failure) {
    struct mapped_file_header *header = &result->header;
    if (header->block_count == UINT32_MAX)
        return supply__fail(failure, SUPPLY_ERROR_NO_SPACE, "result %s (%s) has %u blocks, and cannot have more",
                            result->unsealed.path, result->unsealed.origin, header->block_count);
    const uint64_t at = header->ring_offset + header->block_count * header->block_bytes;
    notification->generation = header->generation;
    notification->kind = NOTIFICATION_BLOCK;
    notification->sequence = header->block_count;
    notification->first_element = header->epoch_elements;
    notification->offset = at;
    const uint64_t end = at + notification->size, rows = notification->element_count;
    TRY(supply__space_write_pieces(&result->file, at, notification->size, pieces, count, failure));
    header->file_bytes = end;
    header->epoch_elements += rows;
    header->published = ++header->block_count;
    supply__fail_point("W3");
    return SUPPLY_OK;
}

static bool write_sealed(const struct result_file *result, uint32_t sealed) {
    return pwrite(result->file.fd, &sealed, sizeof sealed, offsetof(struct mapped_file_header, sealed)) ==
           sizeof sealed;
}

supply_status_t supply__result_file_seal(struct result_file *result, struct failure *failure) {
    TRY(write_fields(result, failure));
    bool is_sealed =
        ftruncate(result->file.fd, (off_t)result->header.file_bytes) == 0 && write_sealed(result, SEALED_COMPLETE);
    if (is_sealed && result->link != NULL)
        return supply__link_keep(result->link, result->of_link.name, result->file.fd, NULL, failure);
    if (is_sealed) is_sealed = supply__claim_rename(&result->file, &result->sealed);
    if (!is_sealed)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "result %s (%s) cannot be sealed: %m", result->unsealed.path,
                            result->unsealed.origin);
    supply__fail_point("W4");
    return SUPPLY_OK;
}

bool supply__result_file_abort(struct result_file *result, const char *reason) {
    char *text = result->header.rank_failure;
    supply__copy_line(text, sizeof result->header.rank_failure, reason, sizeof result->header.rank_failure);
    if (result->link != NULL) {
        struct failure failure;
        /* If Spark does not get the reason, it misses the result. */
        supply__link_keep(result->link, result->of_link.name, result->file.fd, text, &failure);
        return true;
    }
    const ssize_t bytes = sizeof result->header.rank_failure;
    return pwrite(result->file.fd, text, (size_t)bytes, offsetof(struct mapped_file_header, rank_failure)) == bytes &&
           write_sealed(result, SEALED_ABORTED);
}

void supply__result_file_close(struct result_file *result) {
    /* Not only by closing: a forked child has a copy of the descriptor. */
    if (result->file.fd >= 0) supply__file_lock(result->file.fd, F_UNLCK, RANK_LOCK_BYTE);
    /* In a child, the parent's thread may hold its lock for ever. */
    if (result->link != NULL) supply__link_drop(result->link, &result->of_link);
    supply__result_file_abandon(result);
}

void supply__result_file_abandon(struct result_file *result) {
    supply__claim_close(&result->file);
    free(result->unsealed.path);
    free(result->unsealed.origin);
    free(result->sealed.path);
    free(result->sealed.origin);
    *result = RESULT_FILE_NONE;
}

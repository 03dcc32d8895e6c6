/**
 * The functions of supply_result.h, except those that write columns (result_columns.c) and Arrow (result_arrow.c). One
 * thread uses a result; it needs no lock of a pair. Its file (W1 to W5) is written by block/result_file.c.
 */
#include "api/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opener.h"
#include "files/result_names.h"

static supply_status_t fail_for_good(supply_result_t *result) {
    result->broken = result->failure;
    return result->broken.status;
}

supply_status_t supply__result_fail(supply_result_t *result, supply_status_t status, const char *format, ...) {
    const int error = errno;
    char text[sizeof result->failure.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    errno = error;
    supply__fail(&result->failure, status, "%s: %s", result->name ? result->name : "result", text);
    return status == SUPPLY_ERROR_ARGUMENT ? status : fail_for_good(result);
}

static supply_status_t set_texts(supply_result_t *result, const struct settings *settings, const char *name) {
    result->pair_origin = strdup(settings->files.mapped_file.origin);
    if (asprintf(&result->name, "result '%s'", name) < 0) result->name = NULL;
    if (result->name != NULL && result->pair_origin != NULL) return SUPPLY_OK;
    return supply__fail(&result->failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

/* pair: NULL: the rank has none. */
static supply_status_t result_begin(supply_result_t *result, const struct settings *settings, const struct pair *pair,
                                    const char *name) {
    struct failure failure;
    TRY(set_texts(result, settings, name));
    supply_status_t status =
        supply__block_writer_init(&result->writer, &result->schema, settings->block_bytes, &failure);
    if (status == SUPPLY_ERROR_CONFIG)
        return supply__result_fail(result, status, "%s: set a larger block= (and ring=), or write fewer columns",
                                   failure.text);
    if (status != SUPPLY_OK) return supply__result_fail(result, status, "%s", failure.text);
    status = supply__result_file_create(&result->file, settings, pair, name, &result->schema, &result->failure);
    result->is_open = status == SUPPLY_OK;
    return status;
}

static void result_take_schema(supply_result_t *result, struct schema *schema) {
    result->schema = *schema;
    *schema = (struct schema){0};
}

supply_status_t supply__result_open_schema(supply_result_t *result, const supply_t *supply, const char *name,
                                           struct schema *schema) {
    const supply_status_t opened = supply__check_open(supply);
    if (opened != SUPPLY_OK)
        return supply__result_fail(result, opened, "the pair is not open: %s", supply_error(supply));
    if (!*supply->exports->is_mine)
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "%s was opened by the process from which this one was forked: begin a result there",
                                   supply->pair.name);
    const struct pair *pair = supply__filler_pair(supply);
    result_take_schema(result, schema);
    return result_begin(result, &pair->settings, pair, name);
}

supply_status_t supply__result_create_schema(supply_result_t *result, const supply_options_t *options, const char *name,
                                             struct schema *schema) {
    struct settings settings;
    struct failure failure;
    supply_status_t status = supply__settings(options, &settings, &failure);
    result_take_schema(result, schema);
    if (status == SUPPLY_OK && settings.address != NULL)
        status = supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                     "a rank elsewhere than Spark writes results over the connection of its data: open "
                                     "that, and begin the result with it");
    else if (status == SUPPLY_OK) {
        status = result_begin(result, &settings, NULL, name);
    } else {
        errno = failure.error;
        supply__result_fail(result, status, "%s", failure.text);
    }
    supply__settings_free(&settings);
    return status;
}

static void result_free_memory(supply_result_t *result) {
    supply__block_writer_free(&result->writer);
    supply__schema_free(&result->schema);
    supply__opener_free(result->is_mine);
    free(result->name);
    free(result->pair_origin);
    free(result);
}

static void result_free(supply_result_t *result) {
    supply__result_file_close(&result->file);
    result_free_memory(result);
}

static bool result_is_in_child(const supply_result_t *result) { return result->is_open && !*result->is_mine; }

supply_status_t supply__result_check_open(supply_result_t *result) {
    if (result == NULL) return SUPPLY_ERROR_ARGUMENT;
    if (!result->is_open) return result->failure.status;
    if (result_is_in_child(result))
        return supply__result_fail(result, SUPPLY_ERROR_ARGUMENT,
                                   "process %d has opened it, from which this one was forked: write in that process",
                                   (int)result->process);
    if (result->broken.status != SUPPLY_OK) result->failure = result->broken;
    return result->broken.status;
}

static supply_status_t write_block(supply_result_t *result) {
    const int count = supply__block_writer_lay_out(&result->writer);
    struct notification *notification = &result->writer.header->notification;
    if (supply__result_file_write(&result->file, notification, result->writer.pieces, count, &result->failure) ==
        SUPPLY_OK)
        return SUPPLY_OK;
    return fail_for_good(result);
}

/* Names the column that takes most of the row. */
static supply_status_t fail_too_large(supply_result_t *result, const struct column_rows *rows, uint64_t row) {
    const struct block_writer *writer = &result->writer;
    uint32_t largest = 0;
    for (uint32_t i = 1; i < result->schema.count; i++)
        if (supply__block_writer_row_bytes(writer, i, rows, row) >
            supply__block_writer_row_bytes(writer, largest, rows, row))
            largest = i;
    return supply__result_fail(
        result, SUPPLY_ERROR_CONFIG,
        "row %llu does not fit into a block of %zu bytes: its column '%s' has %llu bytes: set a larger "
        "block= (and ring=), at least block=%llu (%s)",
        (unsigned long long)result->rows, writer->block_bytes, supply__schema_path(&result->schema, largest).text,
        (unsigned long long)supply__block_writer_row_bytes(writer, largest, rows, row),
        supply__block_bytes_for(supply__block_writer_bytes_with(writer, rows, row)), result->pair_origin);
}

supply_status_t supply__result_append(supply_result_t *result, const struct column_rows *rows, uint64_t count) {
    struct block_writer *writer = &result->writer;
    for (uint64_t from = 0; from < count;) {
        const uint64_t end = from + supply__block_writer_fit(writer, rows, from, count);
        if (end > from) {
            if (!supply__block_writer_append(writer, rows, from, end))
                return supply__result_fail(result, SUPPLY_ERROR_MEMORY, "out of memory");
            result->rows += end - from;
            from = end;
        } else if (writer->rows == 0) {
            return fail_too_large(result, rows, from);
        } else {
            TRY(write_block(result));
        }
    }
    return SUPPLY_OK;
}

supply_status_t supply_result_seal(supply_result_t *result) {
    TRY(supply__result_check_open(result));
    if (result->writer.rows > 0) TRY(write_block(result));
    const supply_status_t status = supply__result_file_seal(&result->file, &result->failure);
    if (status == SUPPLY_OK) result_free(result);
    return status < SUPPLY_OK ? fail_for_good(result) : status;
}

supply_status_t supply_result_abort(supply_result_t *result, const char *reason) {
    if (result == NULL) return SUPPLY_OK;
    if (result_is_in_child(result)) return supply_result_abandon_in_child(result);
    if (reason == NULL || *reason == '\0') reason = "the rank did not say why";
    const bool said = !result->is_open || supply__result_file_abort(&result->file, reason);
    const int error = errno;
    result_free(result);
    errno = error;
    return said ? SUPPLY_OK : SUPPLY_ERROR_SYSTEM;
}

supply_status_t supply_result_abandon_in_child(supply_result_t *result) {
    if (result == NULL) return SUPPLY_OK;
    if (result->is_open && !result_is_in_child(result)) return SUPPLY_ERROR_ARGUMENT;
    supply__result_file_abandon(&result->file);
    result_free_memory(result);
    return SUPPLY_OK;
}

uint64_t supply_result_rows(const supply_result_t *result) { return result != NULL ? result->rows : 0; }

const char *supply_result_path(const supply_result_t *result) {
    return result != NULL && result->is_open ? result->file.sealed.path : "";
}

const char *supply_result_error(const supply_result_t *result) {
    if (result == NULL) return "out of memory, or supply_result_open() was given no place for the handle";
    return result->failure.status == SUPPLY_OK ? "no failure" : result->failure.text;
}

int supply_result_error_errno(const supply_result_t *result) {
    return result != NULL && result->failure.status != SUPPLY_OK ? result->failure.error : 0;
}

/** Writes this rank's part of a matrix by supply_result.h, as a result that Spark reads as a DataFrame. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/result_names.h"
#include "matrices.h"
#include "supply_result.h"

/* Of one call of supply_result_write(). */
#define ROWS_AT_ONCE 65536

struct output {
    supply_result_t *result;
    const struct held *held;
    uint64_t rows;
    int32_t *offsets; /**< of keys of any length */
};

static bool has_keys(const struct held *held) { return held->keys != NULL && held->keys->format[0] != '\0'; }

/* The keys of some rows. Keys of any length get offsets that count from the first of them. */
static supply_column_t output_keys(const struct output *output, uint64_t from, uint32_t count) {
    const struct keys *keys = output->held->keys;
    supply_column_t column = {.element_count = count};
    if (keys->ends.address == NULL) {
        const size_t bytes = keys->values.bytes / keys->count;
        column.data = keys->values.address + from * bytes;
        column.data_bytes = count * bytes;
        return column;
    }
    const uint64_t *ends = (const uint64_t *)keys->ends.address;
    const uint64_t begin = from == 0 ? 0 : ends[from - 1];
    output->offsets[0] = 0;
    for (uint32_t i = 0; i < count; i++) output->offsets[i + 1] = (int32_t)(ends[from + i] - begin);
    column.offsets = output->offsets;
    column.data = keys->values.address + begin;
    column.data_bytes = (size_t)output->offsets[count];
    return column;
}

/* How many rows from there on have keys whose offsets fit into 32 bits. */
static uint32_t rows_at_once(const struct output *output, uint64_t from) {
    const uint64_t left = output->rows - from, most = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
    const struct keys *keys = output->held->keys;
    if (!has_keys(output->held) || keys->ends.address == NULL) return (uint32_t)most;
    const uint64_t *ends = (const uint64_t *)keys->ends.address, begin = from == 0 ? 0 : ends[from - 1];
    uint32_t count = 1;
    while (count < most && ends[from + count] - begin <= INT32_MAX) count++;
    return count;
}

static bool write_rows(const struct output *output) {
    const supply_matrix_t *part = &output->held->part;
    for (uint64_t from = 0, count; from < output->rows; from += count) {
        count = rows_at_once(output, from);
        supply_column_t columns[2];
        int used = 0;
        if (has_keys(output->held)) columns[used++] = output_keys(output, from, (uint32_t)count);
        columns[used++] = (supply_column_t){.element_count = (uint32_t)count,
                                            .data = part->values + from * part->columns,
                                            .data_bytes = count * part->columns * sizeof(double)};
        if (supply_result_write(output->result, columns, used) != SUPPLY_OK) return false;
    }
    return supply_result_seal(output->result) == SUPPLY_OK;
}

static bool output_write(struct output *output, const supply_options_t *options, const char *name, char *text) {
    char format[32];
    snprintf(format, sizeof format, "+w:%" PRIu64, output->held->part.columns);
    const supply_field_t all[] = {{.name = "key", .format = has_keys(output->held) ? output->held->keys->format : ""},
                                  {.name = "row", .format = format, .child_format = "g"}};
    const bool keyed = has_keys(output->held);
    if (supply_result_create(&output->result, options, name, keyed ? all : all + 1, keyed ? 2 : 1) == SUPPLY_OK &&
        write_rows(output))
        return true;
    snprintf(text, SUPPLY_TEXT_BYTES, "%s", supply_result_error(output->result));
    supply_result_abort(output->result, text);
    return false;
}

bool write_matrix(const struct held *held, const struct ranks *ranks, const supply_options_t *options, const char *name,
                  char *text) {
    struct output output = {.held = held, .rows = held->is_array && ranks->rank > 0 ? 0 : held->part.local_rows};
    output.offsets = malloc((ROWS_AT_ONCE + 1) * sizeof *output.offsets);
    if (output.offsets == NULL) {
        return refuse(text, "out of memory");
    }
    const bool written = output_write(&output, options, name, text);
    free(output.offsets);
    return written;
}

void remove_written(const supply_options_t *options) {
    struct settings settings;
    struct failure failure;
    if (supply__settings(options, &settings, &failure) == SUPPLY_OK) supply__old_results_remove(&settings, &failure);
    supply__settings_free(&settings);
    /* Fails until the last rank has removed its file. */
    if (options->results_folder != NULL) rmdir(options->results_folder);
}

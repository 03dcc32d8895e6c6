/*
 * Sends a value for each element back to Spark: the result `mean_pixels` has the key of each Datum of the first epoch
 * and the mean of its bytes.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <supply_mpi.h>
#include <supply_result.h>

static const supply_field_t fields[] = {{.name = "key", .format = "z"}, {.name = "mean", .format = "f"}};

static float mean(const uint8_t *data, size_t bytes) {
    unsigned long sum = 0;
    for (size_t i = 0; i < bytes; i++) sum += data[i];
    return bytes > 0 ? (float)sum / (float)bytes : 0;
}

static supply_status_t find(supply_t *supply, const supply_block_t *block, const char *name, supply_column_t *column) {
    const int index = supply_column_index(supply, name);
    return index < 0 ? (supply_status_t)index : supply_column(supply, block, index, column);
}

/* Writes a row for each element of a block. The keys are passed on as they lie in the block. */
static supply_status_t write_means(supply_result_t *result, const supply_column_t *keys, const supply_column_t *data) {
    float *means = malloc(data->element_count * sizeof *means);
    if (means == NULL) return SUPPLY_ERROR_MEMORY;
    supply_status_t status = SUPPLY_OK;
    for (uint32_t i = 0; i < data->element_count && status == SUPPLY_OK; i++) {
        const void *pixels;
        size_t bytes;
        status = supply_value(data, i, &pixels, &bytes);
        if (status == SUPPLY_OK) means[i] = mean(pixels, bytes);
    }
    const supply_column_t columns[] = {
        *keys,
        {.element_count = data->element_count, .data = means, .data_bytes = data->element_count * sizeof *means},
    };
    if (status == SUPPLY_OK) status = supply_result_write(result, columns, 2);
    free(means);
    return status;
}

/* With the status, because supply_value() leaves no text. */
_Noreturn static void fail(int rank, supply_status_t status, const char *text) {
    fprintf(stderr, "mean-pixels: rank %d: %s: %s\n", rank, supply_status_name(status), text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    supply_options_t options;
    supply_options_init(&options);
    supply_options_from_comm(&options, MPI_COMM_WORLD);

    supply_t *supply;
    supply_result_t *result;
    supply_status_t status = supply_open(&supply, &options);
    if (status != SUPPLY_OK) fail(options.rank, status, supply_error(supply));
    status = supply_result_open(&result, supply, "mean_pixels", fields, 2);
    if (status != SUPPLY_OK) fail(options.rank, status, supply_result_error(result));

    while (status != SUPPLY_END_OF_DATA) {
        supply_block_t block;
        supply_column_t keys, data;
        status = supply_next(supply, &block);
        if (status < 0) fail(options.rank, status, supply_error(supply));
        if (status != SUPPLY_OK) continue;
        if (block.epoch == 0) {
            status = find(supply, &block, "key", &keys);
            if (status == SUPPLY_OK) status = find(supply, &block, "data", &data);
            if (status != SUPPLY_OK) fail(options.rank, status, supply_error(supply));
            status = write_means(result, &keys, &data);
            if (status != SUPPLY_OK) fail(options.rank, status, supply_result_error(result));
        }
        supply_release(supply, &block);
    }
    printf("rank %d: %llu rows in %s\n", options.rank, (unsigned long long)supply_result_rows(result),
           supply_result_path(result));
    status = supply_result_seal(result);
    if (status != SUPPLY_OK) fail(options.rank, status, supply_result_error(result));
    status = supply_close(supply);
    if (status != SUPPLY_OK) fail(options.rank, status, "Spark's run failed at its end");
    MPI_Finalize();
}

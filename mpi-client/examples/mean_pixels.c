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

_Noreturn static void fail(const char *text) {
    fprintf(stderr, "mean-pixels: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Writes a row for each element of a block. The keys are passed on as they lie in the block. */
static void write_means(supply_result_t *result, const supply_column_t *keys, const supply_column_t *data) {
    float *means = malloc(data->element_count * sizeof *means);
    if (means == NULL) fail("out of memory");
    for (uint32_t i = 0; i < data->element_count; i++) {
        const void *pixels;
        size_t bytes;
        if (supply_value(data, i, &pixels, &bytes) != SUPPLY_OK) fail("an image was changed while it was read");
        means[i] = mean(pixels, bytes);
    }
    const supply_column_t columns[] = {
        *keys,
        {.element_count = data->element_count, .data = means, .data_bytes = data->element_count * sizeof *means},
    };
    if (supply_result_write(result, columns, 2) != SUPPLY_OK) fail(supply_result_error(result));
    free(means);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    supply_t *supply = supply_open_mpi(MPI_COMM_WORLD);
    supply_result_t *result;
    supply_result_open(&result, supply, "mean_pixels", fields,
                       2); /* a failure is that of the first row, or of the seal */
    supply_block_t block;
    while (supply_next(supply, &block) == SUPPLY_OK) {
        supply_column_t keys, data;
        if (supply_column_named(supply, &block, "key", "z", &keys) != SUPPLY_OK ||
            supply_column_named(supply, &block, "data", "z", &data) != SUPPLY_OK)
            break;
        write_means(result, &keys, &data);
        supply_release(supply, &block);
    }
    /* One epoch is enough. Spark reads the result when its run has ended, so the result is sealed before. */
    if (supply_status(supply) == SUPPLY_END_OF_EPOCH && supply_skip_rest(supply) == SUPPLY_END_OF_DATA) {
        printf("rank %d: %llu rows in %s\n", rank, (unsigned long long)supply_result_rows(result),
               supply_result_path(result));
        if (supply_result_seal(result) != SUPPLY_OK) fail(supply_result_error(result));
    } else {
        /* Otherwise Spark would say only that the rank died. */
        supply_result_abort(result, supply_error(supply));
    }
    char why[SUPPLY_TEXT_BYTES];
    if (supply_finish(supply, why) < 0) fail(why);
    MPI_Finalize();
}

/* Means of two numeric columns over all ranks, read through the Arrow C Data Interface, as by a library. */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <supply_arrow.h>
#include <supply_mpi.h>

#define COLUMNS 2

struct total {
    double sum;
    double count;
};

static bool is_valid(const struct ArrowArray *array, int64_t i) {
    const uint8_t *validity = array->buffers[0];
    return validity == NULL || (validity[i / 8] >> i % 8 & 1);
}

/* Element i of a column of numbers, which begins at the array's offset. */
static double number_at(const struct ArrowArray *array, char format, int64_t i) {
    const void *values = array->buffers[1];
    switch (format) {
        case 'c':
            return ((const int8_t *)values)[i];
        case 's':
            return ((const int16_t *)values)[i];
        case 'i':
            return ((const int32_t *)values)[i];
        case 'l':
            return (double)((const int64_t *)values)[i];
        case 'f':
            return ((const float *)values)[i];
        default:
            return ((const double *)values)[i];
    }
}

static bool is_numeric(const struct ArrowSchema *schema) {
    return strlen(schema->format) == 1 && strchr("csilfg", schema->format[0]) != NULL;
}

/* Knows nothing of libsupply: schema and array may come from anywhere. False if the column does not hold numbers. */
static bool add(struct total *total, const struct ArrowSchema *schema, const struct ArrowArray *array) {
    if (!is_numeric(schema)) return false;
    for (int64_t i = array->offset; i < array->offset + array->length; i++) {
        if (!is_valid(array, i)) continue;
        total->sum += number_at(array, schema->format[0], i);
        total->count += 1;
    }
    return true;
}

_Noreturn static void fail(const char *text) {
    fprintf(stderr, "arrow-columns: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Adds one column of a block. The array holds the block until it is released. */
static bool add_column(supply_t *supply, const supply_block_t *block, const char *name, struct total *total) {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const int index = supply_column_index(supply, name);
    if (index < 0 || supply_export_arrow(supply, block, index, &schema, &array) != SUPPLY_OK) return false;
    if (!add(total, &schema, &array)) {
        char text[512];
        snprintf(text, sizeof text, "column '%s' is not of numbers", name);
        supply_abort(supply, text);
        fail(text);
    }
    array.release(&array);
    schema.release(&schema);
    return true;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 1 + COLUMNS) {
        fprintf(stderr, "usage: arrow-columns COLUMN COLUMN\nMeans of two columns of numbers over all ranks.\n");
        MPI_Finalize();
        return 2;
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    supply_t *supply = supply_open_mpi(MPI_COMM_WORLD);
    supply_block_t block;
    struct total totals[COLUMNS] = {{0, 0}}, sums[COLUMNS];
    do
        while (supply_next(supply, &block) == SUPPLY_OK) {
            int added = 0;
            while (added < COLUMNS && add_column(supply, &block, argv[1 + added], &totals[added])) added++;
            if (added < COLUMNS) break;
            supply_release(supply, &block);
        }
    while (supply_status(supply) == SUPPLY_END_OF_EPOCH);
    char why[SUPPLY_TEXT_BYTES];
    if (supply_finish(supply, why) < 0) fail(why);
    MPI_Reduce(totals, sums, 2 * COLUMNS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < COLUMNS; i++)
        printf("arrow-columns: %s values=%.0f mean=%.6f\n", argv[1 + i], sums[i].count, sums[i].sum / sums[i].count);
    MPI_Finalize();
}

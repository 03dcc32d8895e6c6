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
        case 'C':
            return ((const uint8_t *)values)[i];
        case 's':
            return ((const int16_t *)values)[i];
        case 'S':
            return ((const uint16_t *)values)[i];
        case 'i':
            return ((const int32_t *)values)[i];
        case 'I':
            return ((const uint32_t *)values)[i];
        case 'l':
            return (double)((const int64_t *)values)[i];
        case 'L':
            return (double)((const uint64_t *)values)[i];
        case 'f':
            return ((const float *)values)[i];
        default:
            return ((const double *)values)[i];
    }
}

static bool is_numeric(const struct ArrowSchema *schema) {
    return strlen(schema->format) == 1 && strchr("cCsSiIlLfg", schema->format[0]) != NULL;
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

/* Adds one column of a block. The array holds the block until it is released. */
static supply_status_t add_column(supply_t *supply, const supply_block_t *block, const char *name, struct total *total,
                                  const char **problem) {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const int index = supply_column_index(supply, name);
    supply_status_t status =
        index < 0 ? (supply_status_t)index : supply_export_arrow(supply, block, index, &schema, &array);
    if (status != SUPPLY_OK) {
        *problem = supply_error(supply);
        return status;
    }
    if (!add(total, &schema, &array)) {
        *problem = "it is not of numbers";
        status = SUPPLY_ERROR_ARGUMENT;
    }
    array.release(&array);
    schema.release(&schema);
    return status;
}

static supply_status_t receive(supply_t *supply, char **names, struct total *totals, char *text, size_t text_bytes) {
    for (;;) {
        supply_block_t block;
        supply_status_t status = supply_next(supply, &block);
        if (status == SUPPLY_END_OF_EPOCH) continue;
        if (status == SUPPLY_END_OF_DATA) return SUPPLY_OK;
        if (status < 0) {
            snprintf(text, text_bytes, "%s", supply_error(supply));
            return status;
        }
        for (int i = 0; i < COLUMNS; i++) {
            const char *problem = NULL;
            status = add_column(supply, &block, names[i], &totals[i], &problem);
            if (status == SUPPLY_OK) continue;
            snprintf(text, text_bytes, "column '%s': %s", names[i], problem);
            return status;
        }
        supply_release(supply, &block);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 1 + COLUMNS) {
        fprintf(stderr, "usage: arrow-columns COLUMN COLUMN\nMeans of two columns of numbers over all ranks.\n");
        MPI_Finalize();
        return 2;
    }
    supply_options_t options;
    supply_options_init(&options);
    supply_options_from_comm(&options, MPI_COMM_WORLD);

    supply_t *supply;
    struct total totals[COLUMNS] = {{0, 0}};
    char text[2048];
    supply_status_t status = supply_open(&supply, &options);
    if (status == SUPPLY_OK)
        status = receive(supply, argv + 1, totals, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", supply_error(supply));
    if (status < 0) {
        fprintf(stderr, "arrow-columns: rank %d: %s\n", options.rank, text);
        supply_abort(supply, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    status = supply_close(supply);
    if (status < 0) {
        fprintf(stderr, "arrow-columns: rank %d: %s at the end\n", options.rank, supply_status_name(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    struct total sums[COLUMNS];
    MPI_Reduce(totals, sums, 2 * COLUMNS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; options.rank == 0 && i < COLUMNS; i++)
        printf("arrow-columns: %s values=%.0f mean=%.6f\n", argv[1 + i], sums[i].count, sums[i].sum / sums[i].count);
    MPI_Finalize();
}

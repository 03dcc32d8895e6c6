/**
 * Takes a matrix from Spark: reads the blocks of a pair by supply.h, checks each row, and copies it into this rank's
 * memory. It trusts no length in a block.
 */
#include "receive.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "base/failure.h"
#include "memory.h"
#include "supply_mpi.h"
#include "unique_keys.h"

/* The columns of a block, by their parts in a matrix. */
struct row_columns {
    supply_column_t key, row, indices, entries;
    bool has_key, is_sparse;
};

struct intake {
    struct reception *reception;
    const struct ranks *ranks;
    struct held *held;
    uint64_t rows;
    uint64_t *ends; /**< of the values of a column */
    char *text;
};

/* Offsets lie in shared memory and were checked once: a place outside of the column is never read. */
static bool refuse_change(struct intake *intake) {
    return refuse(intake->text, "another program has written into the pair");
}

/* Where the values of a column end, checked, in this process's own memory. */
static bool take_ends(struct intake *intake, const supply_column_t *column, uint64_t *ends) {
    const uint32_t count = column->element_count;
    return (supply_gather(column, 0, count, (int64_t *)ends, NULL, 0) == SUPPLY_OK &&
            ends[count - 1] == column->data_bytes) ||
           refuse_change(intake);
}

/* The same, until the next call. NULL: refused. */
static const uint64_t *ends_of(struct intake *intake, const supply_column_t *column) {
    uint64_t *ends = reallocarray(intake->ends, column->element_count, sizeof *ends);
    if (ends == NULL) {
        refuse(intake->text, "no memory for a matrix");
        return NULL;
    }
    intake->ends = ends;
    return take_ends(intake, column, ends) ? ends : NULL;
}

static void *intake_add(struct intake *intake, struct growing *memory, size_t bytes) {
    void *added = growing_add(memory, bytes);
    if (added == NULL)
        refuse(intake->text,
               "matrix %" PRIu64 " needs %.1f GB more memory on node %s after %" PRIu64
               " of its rows, and %.1f GB are free there: use more nodes, or drop other matrices",
               intake->reception->handle, (double)growing_needed(memory, bytes) / 1e9, intake->ranks->node,
               intake->rows, (double)node_memory_available("") / 1e9);
    return added;
}

/* "key 17", or "row 3 of rank 1": where the program looks for a wrong row. */
static const char *name_row(const struct intake *intake, const struct row_columns *columns, uint32_t element,
                            char name[64]) {
    char key[40];
    if (columns->has_key && strcmp(columns->key.format, "l") == 0)
        snprintf(name, 64, "the row with key %" PRId64, ((const int64_t *)columns->key.data)[element]);
    else if (columns->has_key && strcmp(columns->key.format, "i") == 0)
        snprintf(name, 64, "the row with key %" PRId32, ((const int32_t *)columns->key.data)[element]);
    else if (columns->has_key && columns->key.offsets != NULL) {
        const void *text;
        size_t bytes;
        if (supply_value(&columns->key, element, &text, &bytes) != SUPPLY_OK) return "a row";
        supply__copy_line(key, sizeof key, text, bytes);
        snprintf(name, 64, "the row with key '%s'", key);
    } else
        snprintf(name, 64, "row %" PRIu64 " of rank %d", intake->rows + element, intake->ranks->rank);
    return name;
}

static bool intake_find_column(struct intake *intake, const supply_block_t *block, const char *name,
                               supply_column_t *column, bool *found) {
    supply_t *supply = intake->reception->supply;
    const int index = supply_column_index(supply, name);
    *found = index >= 0;
    if (index == SUPPLY_ERROR_NO_COLUMN) return true;
    if (index < 0 || supply_column(supply, block, index, column) != SUPPLY_OK)
        return refuse(intake->text, "%s", supply_error(supply));
    if (column->child_count > 0)
        return refuse(intake->text, "column '%s' has values within values of the type '%s'", name, column->format);
    if (column->offsets != NULL && column->offsets[0] != 0)
        return refuse(intake->text, "column '%s' has bytes in front of its first row", name);
    if (column->null_count == 0) return true;
    uint32_t element = 0;
    while (element < column->element_count - 1 && (column->validity[element / 8] >> element % 8 & 1) != 0) element++;
    return refuse(intake->text, "column '%s' has a null in row %" PRIu64 " of rank %d: fill it, or drop the row", name,
                  intake->rows + element, intake->ranks->rank);
}

static bool intake_find_columns(struct intake *intake, const supply_block_t *block, struct row_columns *columns) {
    bool has_row, has_entries;
    if (!intake_find_column(intake, block, "key", &columns->key, &columns->has_key) ||
        !intake_find_column(intake, block, "row", &columns->row, &has_row) ||
        !intake_find_column(intake, block, "indices", &columns->indices, &columns->is_sparse) ||
        !intake_find_column(intake, block, "entries", &columns->entries, &has_entries))
        return false;
    if (columns->is_sparse != (intake->reception->columns > 0) || !(columns->is_sparse ? has_entries : has_row))
        return refuse(intake->text, "a dense matrix has a column 'row', and a sparse one has 'indices' and 'entries'");
    return true;
}

static bool take_keys(struct intake *intake, const supply_column_t *key) {
    struct keys *keys = intake->held->keys;
    if (key->format[0] == 'b' || key->format[0] == '+')
        return refuse(intake->text,
                      "column 'key' has booleans or lists, which are no keys: choose numbers, texts or dates");
    snprintf(keys->format, sizeof keys->format, "%s", key->format);
    keys->count += key->element_count;
    const uint64_t before = keys->values.bytes;
    void *values = intake_add(intake, &keys->values, key->data_bytes);
    if (values == NULL) return false;
    memcpy(values, key->data, key->data_bytes);
    if (key->offsets == NULL) return true;
    uint64_t *ends = intake_add(intake, &keys->ends, key->element_count * sizeof *ends);
    if (ends == NULL || !take_ends(intake, key, ends)) return false;
    for (uint32_t i = 0; i < key->element_count; i++) ends[i] += before;
    return true;
}

/* The bytes of each row are the numbers of its array: all rows have as many as the first one. */
static bool check_lengths(struct intake *intake, const struct row_columns *columns) {
    const supply_column_t *row = &columns->row;
    uint64_t *length = &intake->held->part.columns;
    const size_t number = doubles_number_bytes(intake->reception->numbers);
    const uint64_t *ends = ends_of(intake, row);
    for (uint32_t i = 0; i < row->element_count; i++) {
        char name[64];
        if (ends == NULL) return false;
        const uint64_t bytes = ends[i] - (i > 0 ? ends[i - 1] : 0);
        if (intake->rows == 0 && i == 0) *length = bytes / number;
        if (bytes != *length * number)
            return refuse(intake->text,
                          "%s has %" PRIu64 " numbers, and the first row has %" PRIu64
                          ": all rows of a matrix have the same length",
                          name_row(intake, columns, i, name), bytes / number, *length);
    }
    return *length > 0 || refuse(intake->text, "the rows are empty: a matrix needs at least one column");
}

static bool take_dense(struct intake *intake, const struct row_columns *columns) {
    const supply_column_t *row = &columns->row;
    if (row->offsets == NULL) return refuse(intake->text, "column 'row' has no bytes of numbers");
    if (!check_lengths(intake, columns)) return false;
    const uint64_t width = intake->held->part.columns;
    const size_t count = row->element_count * width;
    double *values = intake_add(intake, &intake->held->values, count * sizeof *values);
    if (values == NULL) return false;
    const size_t wrong = doubles_copy(values, row->data, intake->reception->numbers, count);
    if (wrong == count) return true;
    char name[64];
    return refuse(intake->text, "%s has %s in place %" PRIu64 " (from 0): fill it, or drop the row",
                  name_row(intake, columns, (uint32_t)(wrong / width), name),
                  isnan(values[wrong]) ? "NaN" : "an infinity", (uint64_t)(wrong % width));
}

static bool take_sparse(struct intake *intake, const struct row_columns *columns) {
    struct held *held = intake->held;
    const supply_column_t *indices = &columns->indices, *entries = &columns->entries;
    if (indices->offsets == NULL || entries->offsets == NULL)
        return refuse(intake->text, "the columns 'indices' and 'entries' have no bytes of numbers");
    held->part.columns = intake->reception->columns;
    const uint64_t before = held->columns.bytes / sizeof(uint32_t);
    uint32_t *to_columns = intake_add(intake, &held->columns, indices->data_bytes);
    double *to_entries = to_columns == NULL ? NULL : intake_add(intake, &held->values, entries->data_bytes);
    uint64_t *to_offsets =
        to_entries == NULL ? NULL : intake_add(intake, &held->offsets, indices->element_count * sizeof(uint64_t));
    if (to_offsets == NULL || !take_ends(intake, indices, to_offsets)) return false;
    const uint64_t *entries_ends = ends_of(intake, entries);
    if (entries_ends == NULL) return false;
    memcpy(to_columns, indices->data, indices->data_bytes);
    memcpy(to_entries, entries->data, entries->data_bytes);
    uint64_t begin = 0;
    for (uint32_t i = 0; i < indices->element_count; i++) {
        char name[64];
        const uint64_t end = to_offsets[i];
        if (end % sizeof *to_columns != 0 || entries_ends[i] != end * 2)
            return refuse(intake->text, "%s has not as many indices as entries", name_row(intake, columns, i, name));
        for (uint64_t k = begin / 4; k < end / 4; k++)
            if (to_columns[k] >= held->part.columns || !isfinite(to_entries[k]))
                return refuse(intake->text, "%s has the entry %g in column %" PRIu32 " of %" PRIu64,
                              name_row(intake, columns, i, name), to_entries[k], to_columns[k], held->part.columns);
        to_offsets[i] = before + end / 4;
        begin = end;
    }
    return true;
}

static bool intake_take_block(struct intake *intake, const supply_block_t *block) {
    struct row_columns columns = {0};
    if (!intake_find_columns(intake, block, &columns)) return false;
    if (columns.has_key && !take_keys(intake, &columns.key)) return false;
    if (!(columns.is_sparse ? take_sparse(intake, &columns) : take_dense(intake, &columns))) return false;
    intake->rows += block->element_count;
    return true;
}

/* All blocks of the run. */
static bool take_blocks(struct intake *intake) {
    supply_t *supply = intake->reception->supply;
    for (;;) {
        supply_block_t block;
        const supply_status_t status = supply_next(supply, &block);
        if (status == SUPPLY_END_OF_EPOCH) continue;
        if (status == SUPPLY_END_OF_DATA) return true;
        if (status == SUPPLY_INTERRUPTED) return refuse(intake->text, "supply-server was asked to end");
        if (status != SUPPLY_OK) return refuse(intake->text, "%s", supply_error(supply));
        if (!intake_take_block(intake, &block)) return false;
        supply_release(supply, &block);
    }
}

static bool begin_sparse(struct intake *intake) {
    if (intake->reception->columns == 0) return true;
    uint64_t *first = intake_add(intake, &intake->held->offsets, sizeof *first);
    if (first == NULL) return false;
    *first = 0;
    return true;
}

/* The rows of the other ranks, which may have none. */
static void place_rows(struct held *held, const struct ranks *ranks, bool is_sparse) {
    supply_matrix_t *part = &held->part;
    part->first_row = 0;
    MPI_Exscan(&part->local_rows, &part->first_row, 1, MPI_UINT64_T, MPI_SUM, ranks->comm);
    if (ranks->rank == 0) part->first_row = 0;
    MPI_Allreduce(&part->local_rows, &part->rows, 1, MPI_UINT64_T, MPI_SUM, ranks->comm);
    MPI_Allreduce(MPI_IN_PLACE, &part->columns, 1, MPI_UINT64_T, MPI_MAX, ranks->comm);
    /* A rank without rows does not know the format: it has zero bytes. */
    MPI_Allreduce(MPI_IN_PLACE, held->keys->format, sizeof held->keys->format, MPI_UNSIGNED_CHAR, MPI_MAX, ranks->comm);
    growing_fit(&held->values);
    part->values = (double *)held->values.address;
    if (!is_sparse) return;
    part->entries = part->values;
    part->values = NULL;
    part->row_offsets = (const uint64_t *)held->offsets.address;
    part->column_indices = (const uint32_t *)held->columns.address;
}

void reception_take_rows(struct reception *reception, const struct ranks *ranks) {
    struct intake intake = {.reception = reception, .ranks = ranks, .text = reception->text};
    bool received = false;
    reception->held = intake.held = held_new(reception->handle);
    if (intake.held == NULL || (intake.held->keys = keys_new()) == NULL)
        refuse(intake.text, "no memory for a matrix");
    else {
        growing_reuse(&intake.held->values);
        received = begin_sparse(&intake) && take_blocks(&intake);
    }
    free(intake.ends);
    if (received) {
        intake.held->part.local_rows = intake.rows;
        char why[SUPPLY_TEXT_BYTES];
        const supply_status_t status = supply_close_within(reception->supply, INFINITY, why);
        if (status == SUPPLY_INTERRUPTED)
            refuse(intake.text, "supply-server was asked to end");
        else if (status != SUPPLY_OK)
            refuse(intake.text, "%s", why);
        if (status != SUPPLY_INTERRUPTED) reception->supply = NULL;
    }
    supply_abort(reception->supply, reception->text);
    reception->supply = NULL;
}

/* own_columns: of this rank's rows. */
static bool check_rows(const struct held *held, uint64_t own_columns, const struct ranks *ranks,
                       struct progress *progress, char *text) {
    const supply_matrix_t *part = &held->part;
    if (part->rows == 0)
        snprintf(text, SUPPLY_TEXT_BYTES, "the DataFrame has no rows: a matrix needs at least one");
    else if (part->local_rows > 0 && own_columns != part->columns)
        snprintf(text, SUPPLY_TEXT_BYTES,
                 "row 0 of rank %d has %" PRIu64 " numbers, and rows of another rank have %" PRIu64
                 ": all rows of a matrix have the same length",
                 ranks->rank, own_columns, part->columns);
    return ranks_agree(ranks, text) && keys_are_unique(held->keys, ranks, KEYS_PORTION, progress, text);
}

struct held *reception_finish(struct reception *reception, const struct ranks *ranks, struct progress *progress,
                              char *text) {
    struct held *held = reception->held;
    memcpy(text, reception->text, sizeof reception->text);
    if (ranks_agree(ranks, text)) {
        const uint64_t own_columns = held->part.columns;
        place_rows(held, ranks, reception->columns > 0);
        if (check_rows(held, own_columns, ranks, progress, text)) {
            *reception = (struct reception){0};
            return held;
        }
    }
    reception_drop(reception);
    return NULL;
}

void reception_drop(struct reception *reception) {
    held_free(reception->held);
    *reception = (struct reception){0};
}

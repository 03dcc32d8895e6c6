#include "checks.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool is_small_array(supply_call_t *call, const char *name) {
    const supply_matrix_t *A = supply_call_matrix(call, name);
    uint64_t rows = A->local_rows;
    MPI_Allreduce(MPI_IN_PLACE, &rows, 1, MPI_UINT64_T, MPI_SUM, supply_call_comm(call));
    return rows != A->rows;
}

int check_matrix(supply_call_t *call, const char *name) {
    const supply_matrix_t *A = supply_call_matrix(call, name);
    if (A->rows == 0 || A->columns == 0)
        return supply_call_fail(call, "%s is %" PRIu64 " × %" PRIu64 ": it must have rows and columns", name, A->rows,
                                A->columns);
    uint64_t largest = A->local_rows > A->columns ? A->local_rows : A->columns;
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, supply_call_comm(call));
    if (is_small_array(call, name))
        return supply_call_fail(call, "%s is a small array, which every rank has: this routine needs rows", name);
    if (largest <= INT_MAX) return 0;
    return supply_call_fail(call,
                            "%s is %" PRIu64 " × %" PRIu64 ", and one rank has %" PRIu64
                            " rows or columns: at most %d, so use more ranks",
                            name, A->rows, A->columns, largest, INT_MAX);
}

int check_not_sparse(supply_call_t *call, const char *name) {
    int sparse = supply_call_matrix(call, name)->row_offsets != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &sparse, 1, MPI_INT, MPI_MAX, supply_call_comm(call));
    return sparse ? supply_call_fail(call, "%s is sparse, and this routine needs dense vectors", name) : 0;
}

int check_dense(supply_call_t *call, const char *name) {
    return check_not_sparse(call, name) || check_matrix(call, name);
}

int check_count(supply_call_t *call, const char *name, uint64_t most, const char *what) {
    const int64_t value = supply_call_integer(call, name);
    if (value >= 1 && (uint64_t)value <= most) return 0;
    return supply_call_fail(call, "%s is %" PRId64 ": it must be from 1 to %" PRIu64 ", %s", name, value, most, what);
}

int check_not_negative(supply_call_t *call, const char *name) {
    const double value = supply_call_number(call, name);
    if (isfinite(value) && value >= 0) return 0;
    return supply_call_fail(call, "%s is %g: it must not be negative", name, value);
}

int check_same_rows(supply_call_t *call, const char *left, const char *right) {
    const supply_matrix_t *A = supply_call_matrix(call, left);
    const supply_matrix_t *B = supply_call_matrix(call, right);
    if (A->rows != B->rows)
        return supply_call_fail(call,
                                "%s is %" PRIu64 " × %" PRIu64 ", and %s is %" PRIu64 " × %" PRIu64
                                ": they must have the same number of rows",
                                left, A->rows, A->columns, right, B->rows, B->columns);
    int apart = A->local_rows != B->local_rows || A->first_row != B->first_row;
    MPI_Allreduce(MPI_IN_PLACE, &apart, 1, MPI_INT, MPI_MAX, supply_call_comm(call));
    if (!apart) return 0;
    return supply_call_fail(call,
                            "%s and %s have %" PRIu64 " rows each, but not on the same ranks: make both matrices "
                            "from one DataFrame",
                            left, right, A->rows);
}

int check_finite(supply_call_t *call, const char *name, const double *values, uint64_t columns) {
    for (uint64_t i = 0; i < columns; i++)
        if (!isfinite(values[i]))
            return supply_call_fail(call, "%s: column %" PRIu64 " (from 0) has a value that is NaN, or too large", name,
                                    i);
    return 0;
}

int check_all_finite(supply_call_t *call, const char *what, const double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return supply_call_fail(call, "%s has a value that is NaN, or too large", what);
    return 0;
}

int check_choice(supply_call_t *call, const char *name, const char *const *choices, int *index) {
    const char *given = supply_call_text(call, name);
    char all[256] = "";
    for (*index = 0; choices[*index] != NULL; ++*index) {
        if (strcmp(choices[*index], given) == 0) return 0;
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "", choices[*index]);
    }
    return supply_call_fail(call, "%s is '%s': it must be one of %s", name, given, all);
}

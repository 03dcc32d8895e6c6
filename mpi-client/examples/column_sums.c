/** A routine that Spark calls: the sum of each column of a matrix. Compile it with cc -shared -fPIC (docs/OFFLOAD.md).
 */
#include <supply_routine.h>

static int column_sums(supply_call_t *call) {
    const supply_matrix_t *matrix = supply_call_matrix(call, "A");
    const double factor = supply_call_number(call, "factor");
    if (matrix->row_offsets != NULL) return supply_call_fail(call, "column_sums takes dense matrices only");
    double *sums = supply_call_array(call, "sums", 1, matrix->columns);
    if (sums == NULL) return 1;
    for (uint64_t i = 0; i < matrix->local_rows; i++)
        for (uint64_t j = 0; j < matrix->columns; j++) sums[j] += factor * matrix->values[i * matrix->columns + j];
    MPI_Allreduce(MPI_IN_PLACE, sums, (int)matrix->columns, MPI_DOUBLE, MPI_SUM, supply_call_comm(call));
    return 0;
}

const supply_routine_t supply_routines[] = {
    {"column_sums", column_sums, {{"A", SUPPLY_MATRIX, NULL}, {"factor", SUPPLY_NUMBER, "1"}}, {"sums"}},
    {.name = NULL},
};

/* The mean of a column over all ranks and epochs. */
#include <stdio.h>
#include <supply_mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    supply_t *supply = supply_open_mpi(MPI_COMM_WORLD); /* a failure is that of the first call */
    supply_block_t block;
    double sums[2] = {0, 0};
    do
        while (supply_next(supply, &block) == SUPPLY_OK) {
            supply_column_t x;
            if (supply_column_named(supply, &block, "x", "f", &x) != SUPPLY_OK) break; /* checks the type */
            const float *values = x.data;
            for (uint32_t i = 0; i < x.element_count; i++) {
                if (supply_is_null(&x, i)) continue;
                sums[0] += values[i];
                sums[1] += 1;
            }
            supply_release(supply, &block);
        }
    while (supply_status(supply) == SUPPLY_END_OF_EPOCH);
    char why[SUPPLY_TEXT_BYTES];
    if (supply_finish(supply, why) < 0) { /* closes; the text of what failed first outlives the handle */
        fprintf(stderr, "%s\n", why);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    printf("mean %g of %.0f values\n", sums[0] / sums[1], sums[1]);
    MPI_Finalize();
}

/* Counts the Datums that each rank receives. */
#include <stdio.h>
#include <supply_datum.h>
#include <supply_mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    supply_t *supply = supply_open_mpi(MPI_COMM_WORLD); /* a failure is that of the first call */
    unsigned long elements = 0, bytes = 0;
    supply_datum_t datum;
    do
        while (supply_next_datum(supply, &datum) == SUPPLY_OK) {
            elements += 1;
            bytes += datum.data_bytes; /* datum.data lies in the memory that Spark wrote */
        }
    while (supply_status(supply) == SUPPLY_END_OF_EPOCH);
    char why[SUPPLY_TEXT_BYTES];
    if (supply_finish(supply, why) < 0) { /* closes; the text of what failed first outlives the handle */
        fprintf(stderr, "%s\n", why);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("rank %d: %lu elements, %lu bytes\n", rank, elements, bytes);
    MPI_Finalize();
}

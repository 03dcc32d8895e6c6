/* A complete client: counts the Datums that each rank receives. */
#include <mpi.h>
#include <stdio.h>
#include <supply_datum.h>
#include <supply_mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    supply_options_t options;
    supply_options_init(&options);
    supply_options_from_comm(&options, MPI_COMM_WORLD);

    supply_t *supply;
    supply_status_t status = supply_open(&supply, &options);
    unsigned long elements = 0, bytes = 0;
    while (status >= 0 && status != SUPPLY_END_OF_DATA) {
        supply_datum_t datum;
        status = supply_next_datum(supply, &datum);
        if (status != SUPPLY_OK) continue;
        elements += 1;
        bytes += datum.data_bytes; /* datum.data lies in the memory that Spark wrote */
    }
    if (status < 0) fprintf(stderr, "minimal: rank %d: %s\n", options.rank, supply_error(supply));
    const supply_status_t closed = supply_close(supply);
    if (closed < 0) fprintf(stderr, "minimal: rank %d: %s at the end\n", options.rank, supply_status_name(closed));
    if (status < 0 || closed < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    printf("rank %d: %lu elements, %lu bytes\n", options.rank, elements, bytes);
    MPI_Finalize();
}

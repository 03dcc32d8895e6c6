/** Prints the ranks that supply_options_from_comm() finds for MPI_COMM_WORLD, and for its ranks in reverse order. */
#include <stdio.h>

#include "supply_mpi.h"

static void print(const char *name, MPI_Comm comm, int rank) {
    supply_options_t options;
    supply_options_init(&options);
    int code = supply_options_from_comm(&options, comm);
    printf("%s %d: code=%d rank=%d local_rank=%d\n", name, rank, code, options.rank, options.local_rank);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Comm reversed;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    print("world", MPI_COMM_WORLD, rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    print("reversed", reversed, rank);
    MPI_Comm_free(&reversed);
    MPI_Finalize();
    return 0;
}

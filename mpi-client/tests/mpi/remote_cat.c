/** supply-cat for ranks that feeders supply: prints the elements that this rank receives, as supply-cat does. */
#include <stdlib.h>

#include "output.h"
#include "supply_datum.h"
#include "supply_remote.h"

static void fail(supply_t *supply) {
    fprintf(stderr, "remote-cat: %s\n", supply_error(supply));
    supply_close(supply);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm ranks;
    supply_t *supply;
    supply_status_t status = supply_remote_open(&supply, MPI_COMM_WORLD, NULL, &ranks);
    while (status != SUPPLY_END_OF_DATA) {
        supply_datum_t datum;
        if (status < 0) fail(supply);
        status = supply_next_datum(supply, &datum);
        if (status == SUPPLY_OK && !output_element(stdout, &datum)) return 1;
    }
    if (supply_close(supply) != SUPPLY_OK || fflush(stdout) != 0) return 1;
    MPI_Comm_free(&ranks);
    MPI_Finalize();
    return 0;
}

/* A program of another project that exchanges elements. Here its pair is not open, and no other rank waits for it. */
#include <stdio.h>
#include <stdlib.h>
#include <supply_exchange.h>

int main(int argc, char **argv) {
    supply_t *supply;
    unsetenv("SUPPLY_MAPPED_FILES");
    MPI_Init(&argc, &argv);
    supply_status_t status = supply_open(&supply, NULL);
    printf("%s\n", supply_status_name(status));
    printf("%s\n", supply_status_name(supply_exchange_open(&supply, MPI_COMM_SELF, NULL)));
    supply_close(supply);
    MPI_Finalize();
    return 0;
}

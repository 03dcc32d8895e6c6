/** Takes the rows of a sparse matrix: check-rows MAPPED REQUEST NOTIFICATION. Prints why not, or "taken". */
#include <stdio.h>

#include "receive.h"

int main(int argc, char **argv) {
    struct ranks ranks;
    struct reception reception = {.handle = 1, .columns = 10};
    supply_options_t options;
    MPI_Init(&argc, &argv);
    ranks_init(&ranks);
    if (argc < 4) MPI_Abort(ranks.comm, 2);
    supply_options_init(&options);
    options.mapped_file = argv[1];
    options.request_pipe = argv[2];
    options.notification_pipe = argv[3];
    options.local_rank = 0;
    options.timeout = 60;
    options.ring_bytes = 4 << 20;
    options.block_bytes = 1 << 20;
    if (supply_open(&reception.supply, &options) != SUPPLY_OK) MPI_Abort(ranks.comm, 3);
    reception_take_rows(&reception, &ranks);
    puts(reception.text[0] != '\0' ? reception.text : "taken");
    reception_drop(&reception);
    MPI_Finalize();
    return 0;
}

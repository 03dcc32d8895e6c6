#include "expected_rows.h"

#include <stdio.h>

#include "node_memory.h"

void check_expected_rows(const struct ranks *ranks, uint64_t rows, uint64_t bytes, char *text) {
    /* In floating point, which does not overflow. */
    double needed = (double)rows / ranks->count * (double)bytes;
    double available = (double)node_memory_available("");
    MPI_Allreduce(MPI_IN_PLACE, &needed, 1, MPI_DOUBLE, MPI_SUM, ranks->of_node);
    /* Ranks of one node may be in different control groups. */
    MPI_Allreduce(MPI_IN_PLACE, &available, 1, MPI_DOUBLE, MPI_MIN, ranks->of_node);
    if (needed == 0 || needed + (double)NODE_MEMORY_RESERVE <= available) return;
    snprintf(text, FAILURE_TEXT_BYTES,
             "the matrix needs %.1f GB on node %s, and %.1f GB are free there: use more nodes, or drop other matrices",
             needed / 1e9, ranks->node, available / 1e9);
}

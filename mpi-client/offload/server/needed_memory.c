#include "needed_memory.h"

#include <stdio.h>

#include "growing.h"
#include "node_memory.h"

/* Ranks of one node may be in different control groups. */
static double available_on_node(const struct ranks *ranks) {
    double available = (double)node_memory_available("");
    MPI_Allreduce(MPI_IN_PLACE, &available, 1, MPI_DOUBLE, MPI_MIN, ranks->of_node);
    return available;
}

void check_needed_memory(const struct ranks *ranks, double bytes, const char *what, char *text) {
    double needed;
    MPI_Allreduce(&bytes, &needed, 1, MPI_DOUBLE, MPI_SUM, ranks->of_node);
    if (needed == 0 || needed + (double)NODE_MEMORY_RESERVE <= available_on_node(ranks)) return;
    growing_drop_spare();
    MPI_Barrier(ranks->of_node);
    const double available = available_on_node(ranks);
    if (needed + (double)NODE_MEMORY_RESERVE <= available) return;
    snprintf(text, FAILURE_TEXT_BYTES,
             "%s needs %.1f GB on node %s, and %.1f GB are free there: use more nodes, or drop other matrices", what,
             needed / 1e9, ranks->node, available / 1e9);
}

#include "ranks.h"

#include <stdio.h>
#include <string.h>

void ranks_init(struct ranks *ranks) {
    int length;
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks->comm);
    MPI_Comm_rank(ranks->comm, &ranks->rank);
    MPI_Comm_size(ranks->comm, &ranks->count);
    MPI_Get_processor_name(ranks->node, &length);
}

bool ranks_agree(const struct ranks *ranks, char *text) {
    int first = text[0] != '\0' ? ranks->rank : ranks->count;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, ranks->comm);
    if (first == ranks->count) return true;
    if (first == ranks->rank) {
        char own[FAILURE_TEXT_BYTES];
        memcpy(own, text, sizeof own);
        /* The text is cut, not the number. */
        snprintf(text, FAILURE_TEXT_BYTES, "rank %d: %.*s", ranks->rank, FAILURE_TEXT_BYTES - 32, own);
    }
    MPI_Bcast(text, FAILURE_TEXT_BYTES, MPI_CHAR, first, ranks->comm);
    return false;
}

#include "ranks.h"

#include <stdio.h>
#include <string.h>

void ranks_init(struct ranks *ranks) {
    int length;
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks->comm);
    MPI_Comm_rank(ranks->comm, &ranks->rank);
    MPI_Comm_size(ranks->comm, &ranks->count);
    MPI_Get_processor_name(ranks->node, &length);
    MPI_Comm_split_type(ranks->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &ranks->of_node);
}

bool ranks_agree(const struct ranks *ranks, char *text) {
    const bool failed = text[0] != '\0';
    int first = failed ? ranks->rank : ranks->count, failures = failed;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, ranks->comm);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, ranks->comm);
    if (failures == 0) return true;
    if (first == ranks->rank && failures < ranks->count) {
        char own[FAILURE_TEXT_BYTES];
        memcpy(own, text, sizeof own);
        /* The text is cut, not the number. */
        snprintf(text, FAILURE_TEXT_BYTES, "rank %d: %.*s", ranks->rank, FAILURE_TEXT_BYTES - 32, own);
    }
    MPI_Bcast(text, FAILURE_TEXT_BYTES, MPI_CHAR, first, ranks->comm);
    return false;
}

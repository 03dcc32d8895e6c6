/** The ranks of this server, and how they agree. */
#ifndef RANKS_H
#define RANKS_H

#include <mpi.h>
#include <stdbool.h>

/** The longest text of a failure, its zero byte included. */
#define FAILURE_TEXT_BYTES 2048

struct ranks {
    MPI_Comm comm;
    MPI_Comm of_node; /**< of the ranks on this node */
    int rank;
    int count;
    char node[MPI_MAX_PROCESSOR_NAME];
};

void ranks_init(struct ranks *ranks);

/**
 * True if `text` is empty on all ranks. Otherwise every rank gets the text of the lowest rank that has one, with that
 * rank's number in front if others have none. Collective. text: FAILURE_TEXT_BYTES.
 */
bool ranks_agree(const struct ranks *ranks, char *text);

#endif

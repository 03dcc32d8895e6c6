#include "workspace.h"

#include <stdlib.h>

double *workspace_add(struct workspace *workspace, size_t count) {
    void *block = workspace->count < WORKSPACE_BLOCKS_MAX ? calloc(count > 0 ? count : 1, sizeof(double)) : NULL;
    workspace->bytes += count * sizeof(double);
    if (block == NULL)
        workspace->failed = true;
    else
        workspace->blocks[workspace->count++] = block;
    return block;
}

/* All ranks get the text of one that failed, so that it does not matter which of them Spark hears. */
static int agree(supply_call_t *call, bool has_memory, size_t bytes) {
    const MPI_Comm comm = supply_call_comm(call);
    int rank;
    int failed;
    int length;
    char node[MPI_MAX_PROCESSOR_NAME];
    double gigabytes = (double)bytes / 1e9;
    MPI_Comm_rank(comm, &rank);
    failed = has_memory ? -1 : rank;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm);
    if (failed < 0) return 0;
    MPI_Get_processor_name(node, &length);
    MPI_Bcast(node, sizeof node, MPI_CHAR, failed, comm);
    MPI_Bcast(&gigabytes, 1, MPI_DOUBLE, failed, comm);
    return supply_call_fail(call, "rank %d on node %s has no memory for %.3f GB: use more ranks, or more nodes", failed,
                            node, gigabytes);
}

int workspace_check(struct workspace *workspace) {
    const size_t added = workspace->bytes - workspace->checked_bytes;
    workspace->checked_bytes = workspace->bytes;
    if (supply_call_check_memory(workspace->call, added) != 0) return 1;
    return agree(workspace->call, !workspace->failed, workspace->bytes);
}

void workspace_free(struct workspace *workspace) {
    while (workspace->count > 0) free(workspace->blocks[--workspace->count]);
}

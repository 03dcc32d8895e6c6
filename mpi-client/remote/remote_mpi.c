#include "remote_mpi.h"

#include "communicator.h"

supply_status_t remote_mpi_meet(struct link *link, struct processes *processes, MPI_Comm comm, bool is_feeder,
                                double seconds, struct failure *failure) {
    char node[MPI_MAX_PROCESSOR_NAME];
    int length;
    supply_status_t status = remote_mpi_link(link, comm, seconds, failure);
    if (status == SUPPLY_OK)
        status = supply_mpi_check(MPI_Get_processor_name(node, &length), "MPI_Get_processor_name", failure);
    if (status != SUPPLY_OK) return status;
    status = remote_meet(processes, link, is_feeder, node, seconds, failure);
    if (status == SUPPLY_OK) return SUPPLY_OK;
    /* After other failures than of the arguments the meeting may be under way. */
    link->free(link->context, status != SUPPLY_ERROR_ARGUMENT);
    remote_processes_free(processes);
    return status;
}

/** The processes of a communicator of MPI. MPI is called from the thread that opens, without a lock. */
#include "processes_mpi.h"

supply_status_t remote_mpi_meet(struct transport *transport, struct processes *processes, MPI_Comm comm, bool is_feeder,
                                const struct wait_limit *limit, struct failure *failure) {
    char node[MPI_MAX_PROCESSOR_NAME];
    int length;
    TRY(supply__mpi_transport(transport, comm, limit, "supply_remote_open()", failure));
    TRY(supply__mpi_check(MPI_Get_processor_name(node, &length), "MPI_Get_processor_name", failure));
    supply_status_t status = remote_meet(processes, transport, is_feeder, node, limit, failure);
    if (status == SUPPLY_OK) return SUPPLY_OK;
    /* After other failures than of the arguments the meeting may be under way. */
    transport->free(transport->context, status != SUPPLY_ERROR_ARGUMENT);
    remote_processes_free(processes);
    return status;
}

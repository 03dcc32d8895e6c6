/** supply_exchange_open(). */
#include "supply_exchange.h"

#include "exchange.h"
#include "filler.h"
#include "mpi_transport.h"

supply_status_t supply_exchange_open(supply_t **supply, MPI_Comm comm, const supply_exchange_options_t *options) {
    struct transport transport;
    struct failure failure;
    supply_t *pair = supply != NULL ? *supply : NULL;
    struct filler_pair inspected = {.timeout = EXCHANGE_TIMEOUT_WITHOUT_PAIR};
    const bool is_open = supply_filler_inspect(pair, &inspected) == SUPPLY_OK;
    const struct poll_limit limit = {FILLER_LIMIT_FACTOR * inspected.timeout, inspected.interrupted,
                                     inspected.interrupted_context};
    const supply_status_t status = exchange_mpi_transport(&transport, comm, &limit, &failure);
    if (status == SUPPLY_OK) return supply_exchange_over(supply, &transport, options);
    if (is_open) supply_filler_fail(pair, &failure);
    return status;
}

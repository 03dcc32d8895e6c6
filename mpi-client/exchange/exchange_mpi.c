/** supply_exchange_open(): an exchange over MPI. MPI is called by who has the exchange's lock. */
#include "exchange.h"
#include "mpi_transport.h"
#include "supply_exchange.h"
#include "api/filler.h"

supply_status_t supply_exchange_open(supply_t **supply, MPI_Comm comm, const supply_exchange_options_t *options) {
    struct transport transport;
    struct failure failure;
    supply_t *pair = supply != NULL ? *supply : NULL;
    struct filler_pair inspected = {.timeout = EXCHANGE_TIMEOUT_WITHOUT_PAIR};
    const bool is_open = supply__filler_inspect(pair, &inspected) == SUPPLY_OK;
    const struct wait_limit limit = {FILLER_LIMIT_FACTOR * inspected.timeout, inspected.interruption};
    const supply_status_t status = supply__mpi_transport(&transport, comm, &limit, "supply_exchange_open()", &failure);
    if (status == SUPPLY_OK) return supply__exchange_over(supply, &transport, options);
    if (is_open) supply__filler_fail(pair, &failure);
    return status;
}

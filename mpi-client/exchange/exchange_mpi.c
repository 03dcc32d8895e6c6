/** supply_exchange_open(). */
#include "supply_exchange.h"

#include "exchange.h"
#include "filler.h"
#include "mpi_transport.h"

supply_status_t supply_exchange_open(supply_t **supply, MPI_Comm comm, const supply_exchange_options_t *options) {
    struct transport transport;
    struct failure failure;
    supply_t *pair = supply != NULL ? *supply : NULL;
    const double timeout = supply_timeout(pair) > 0 ? supply_timeout(pair) : EXCHANGE_TIMEOUT_WITHOUT_PAIR;
    const supply_status_t status = exchange_mpi_transport(&transport, comm, FILLER_LIMIT_FACTOR * timeout, &failure);
    if (status == SUPPLY_OK) return supply_exchange_over(supply, &transport, options);
    if (supply_timeout(pair) > 0) supply_filler_fail(pair, &failure);
    return status;
}

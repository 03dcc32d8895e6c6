/** Waits for other processes. It runs in the thread that opens, without a lock. */
#include "transport.h"

supply_status_t supply__transport_await(const struct transport *transport, int *operation,
                                        const struct wait_limit *limit, const char *call, const char *advice,
                                        struct failure *failure) {
    struct wait wait = supply__wait_begin(*limit);
    supply_status_t status;
    while ((status = supply__transport_test(transport, operation, failure)) == SUPPLY_AGAIN) {
        const supply_status_t ended = supply__wait_more(&wait);
        if (ended == SUPPLY_ERROR_TIMEOUT)
            return supply__fail(failure, ended,
                                "another process has not called %s for %g s: has it failed, or %s (SUPPLY_TIMEOUT)",
                                call, limit->seconds, advice);
        if (ended == SUPPLY_INTERRUPTED)
            return supply__fail(failure, ended, "the program interrupted the wait until another process has called %s",
                                call);
    }
    return status;
}

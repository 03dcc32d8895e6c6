/** Closes the pairs that feeders have opened for a rank. */
#include <stdlib.h>

#include "clock.h"
#include "filler.h"
#include "remote_state.h"

static void begin(struct remote *remote, const char *reason) {
    remote->is_closing = true;
    remote->close_end = supply_clock_after(FILLER_LIMIT_FACTOR * remote->timeout);
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct source *source = &remote->sources[i];
        const size_t bytes = sizeof source->request.text;
        if (reason != NULL) supply_copy_line(source->request.text, bytes, reason, bytes);
        source_ask(source, reason != NULL ? REMOTE_STOP : REMOTE_CLOSE);
    }
}

/* Drops what arrives for the source. SUPPLY_OK: nothing more will. SUPPLY_AGAIN: not yet. */
static supply_status_t drop_all(struct remote *remote, struct source *source, struct failure *failure) {
    while (!source->is_closed) {
        supply_status_t status = source_advance(source, failure);
        if (status != SUPPLY_OK) return status;
        if (!source->has_notice) return SUPPLY_AGAIN;
        if (source->notice->kind == NOTICE_CLOSED && remote->close_status == SUPPLY_OK)
            remote->close_status = (supply_status_t)source->notice->status;
        status = source_drop(source, remote->slot_bytes, failure);
        if (status != SUPPLY_OK) return status;
    }
    return SUPPLY_OK;
}

/* SUPPLY_OK: all pairs are closed. */
static supply_status_t advance(struct remote *remote, struct failure *failure) {
    supply_status_t all = SUPPLY_OK;
    for (uint32_t i = 0; i < remote->source_count; i++) {
        const supply_status_t status = drop_all(remote, &remote->sources[i], failure);
        if (status < 0) return status;
        if (status == SUPPLY_AGAIN) all = SUPPLY_AGAIN;
    }
    /* What the program has not read is still being received. */
    const supply_status_t status = remote_test_arrivals(remote, failure);
    return status == SUPPLY_OK ? all : status;
}

supply_status_t remote_close(struct remote *remote, double seconds, const char *reason) {
    const int64_t start = supply_clock_now();
    struct failure failure;
    if (remote->has_no_link) return remote->close_status;
    if (!remote->is_closing) begin(remote, reason);
    for (;;) {
        const int64_t now = supply_clock_now();
        const supply_status_t status = advance(remote, &failure);
        if (status == SUPPLY_OK) return remote->close_status;
        if (status < 0) return status;
        if (now >= remote->close_end) return SUPPLY_ERROR_TIMEOUT;
        if ((double)(now - start) >= seconds * 1e9) return SUPPLY_AGAIN;
        if (!remote_pause(remote, start)) return SUPPLY_INTERRUPTED;
    }
}

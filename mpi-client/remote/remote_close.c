/** Closes the pairs that feeders have opened for a rank. */
#include <stdlib.h>

#include "clock.h"
#include "remote.h"
#include "remote_state.h"

static void begin(struct remote *remote, const char *reason) {
    remote->is_closing = true;
    remote->close_end = supply_clock_after(REMOTE_LIMIT_FACTOR * remote->timeout);
    for (uint32_t i = 0; i < remote->source_count; i++) {
        struct source *source = &remote->sources[i];
        const size_t bytes = sizeof source->request.text;
        if (reason != NULL) supply_copy_line(source->request.text, bytes, reason, bytes);
        source_ask(source, reason != NULL ? REMOTE_STOP : REMOTE_CLOSE);
    }
}

/* SUPPLY_OK: all pairs are closed. */
static supply_status_t advance(struct remote *remote, struct failure *failure) {
    supply_status_t status = remote_advance(remote, failure), all = SUPPLY_OK;
    for (uint32_t i = 0; i < remote->source_count && status >= 0; i++) {
        struct source *source = &remote->sources[i];
        if (source->has_notice && source->notice->kind == NOTICE_CLOSED && remote->close_status == SUPPLY_OK)
            remote->close_status = (supply_status_t)source->notice->status;
        if (source->has_notice) status = source_drop(source, remote->slot_bytes, failure);
        if (!source->is_closed) all = SUPPLY_AGAIN;
    }
    /* What the program has not read is still being received. */
    for (uint32_t i = 0; i < remote->count; i++)
        if (remote->arrivals[(remote->first + i) % remote->capacity].receiving != LINK_NONE) all = SUPPLY_AGAIN;
    return status < 0 ? status : all;
}

supply_status_t remote_close(struct remote *remote, double seconds, const char *reason) {
    const int64_t start = supply_clock_now();
    struct failure failure;
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

#include "source.h"

#include <errno.h>
#include <stdlib.h>

supply_status_t source_init(struct source *source, const struct link *link, const struct processes *processes,
                            uint32_t pair, struct failure *failure) {
    const int feeder = remote_feeder_of(processes, pair);
    *source = (struct source){.link = link,
                              .pair = pair,
                              .feeder = feeder,
                              .node = processes->list[feeder].node,
                              .tag = remote_tag(processes, pair),
                              .sending = LINK_NONE,
                              .receiving = LINK_NONE,
                              .dropping = LINK_NONE};
    source->notice = malloc(sizeof *source->notice + TAIL_BYTES_MAX);
    if (source->notice == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return SUPPLY_OK;
}

void source_free(struct source *source) {
    free(source->notice);
    free(source->dropped);
    *source = (struct source){.sending = LINK_NONE, .receiving = LINK_NONE, .dropping = LINK_NONE};
}

void source_ask(struct source *source, enum request_kind kind) {
    source->request.kind = kind;
    source->has_request = true;
}

static supply_status_t send_request(struct source *source, struct failure *failure) {
    supply_status_t status = remote_test(source->link, &source->sending, failure);
    if (status != SUPPLY_OK || !source->has_request) return status;
    source->sent = source->request;
    source->has_request = false;
    return source->link->send(source->link->context, source->feeder, source->tag + TAG_REQUEST, &source->sent,
                              sizeof source->sent, &source->sending, failure);
}

supply_status_t source_advance(struct source *source, struct failure *failure) {
    const struct link *link = source->link;
    supply_status_t status = send_request(source, failure);
    if (status < 0 || source->has_notice || source->is_closed) return status < 0 ? status : SUPPLY_OK;
    if (source->receiving == LINK_NONE)
        status = link->receive(link->context, source->feeder, source->tag + TAG_NOTICE, source->notice,
                               sizeof *source->notice + TAIL_BYTES_MAX, &source->receiving, failure);
    if (status >= 0) status = remote_test(link, &source->receiving, failure);
    source->has_notice = status == SUPPLY_OK;
    if (source->has_notice && source->notice->tail_bytes > TAIL_BYTES_MAX)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "pair %u on node %s: a notice has a tail of %u bytes",
                           source->pair, source->node, source->notice->tail_bytes);
    return status < 0 ? status : SUPPLY_OK;
}

supply_status_t source_next(struct source *source, struct failure *failure) {
    source->has_notice = false;
    source->is_closed = source->notice->kind == NOTICE_CLOSED;
    return source_advance(source, failure);
}

supply_status_t source_receive_block(struct source *source, const struct slot *slot, int *operation,
                                     struct failure *failure) {
    const size_t bytes = source->notice->filled.bytes;
    if (bytes > slot->bytes)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                           "pair %u on node %s: a block has %zu bytes, more than its slot of %zu", source->pair,
                           source->node, bytes, slot->bytes);
    return source->link->receive(source->link->context, source->feeder, source->tag + TAG_BLOCK, slot->address, bytes,
                                 operation, failure);
}

supply_status_t source_drop(struct source *source, size_t block_bytes, struct failure *failure) {
    if (source->notice->kind == NOTICE_BLOCK && source->dropping == LINK_NONE) {
        if (source->dropped == NULL) source->dropped = malloc(block_bytes);
        if (source->dropped == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
        const struct slot slot = {.address = source->dropped, .bytes = block_bytes};
        const supply_status_t status = source_receive_block(source, &slot, &source->dropping, failure);
        if (status != SUPPLY_OK) return status;
    }
    const supply_status_t status = remote_test(source->link, &source->dropping, failure);
    return status == SUPPLY_OK ? source_next(source, failure) : status;
}

bool source_is_pending(const struct source *source) {
    return source->sending != LINK_NONE || source->receiving != LINK_NONE || source->dropping != LINK_NONE;
}

supply_status_t source_failure(const struct source *source, struct failure *failure) {
    errno = source->notice->error;
    return supply_fail(failure, (supply_status_t)source->notice->status, "node %s: %.*s", source->node,
                       (int)source->notice->tail_bytes, (const char *)remote_tail(source->notice));
}

/**
 * A feeder: its pairs, and the loop that lets each of them do what it can, and pauses if none can do anything. It has
 * one thread and no lock. Requests of ranks are checked.
 */
#include "feeder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/filler.h"
#include "base/clock.h"
#include "base/wait.h"
#include "files/options.h"
#include "messages.h"
#include "processes.h"

/** A notice on its way to the rank, and its block. */
struct sending {
    struct sending *next;
    int notice_operation;
    int block_operation;
    supply_block_t block;         /**< held until it is sent; element_count is 0 if there is none */
    struct notice_message notice; /**< with its tail */
};

enum outlet_state {
    OUTLET_WAITS_FOR_OPEN,
    OUTLET_SUPPLIES,
    OUTLET_WAITS_FOR_EPOCH, /**< the program has not asked for what follows the end of an epoch */
    OUTLET_WAITS_FOR_CLOSE, /**< the end of the data, or a failure, is sent */
    OUTLET_CLOSES,          /**< when the rank has received what is under way */
    OUTLET_SENDS_CLOSED,    /**< the last notice is under way */
    OUTLET_CLOSED,
    OUTLET_ABANDONED, /**< the rank does not receive what is under way */
};

struct outlet {
    const struct transport *transport;
    uint32_t pair;
    int rank; /**< number of the process that receives */
    int tag;  /**< the pair's first one */
    supply_options_t options;

    enum outlet_state state;
    supply_t *supply; /**< NULL: not open */
    struct filler_pair inspected;
    bool has_sent_schema;
    struct request_message request;
    int receiving; /**< operation that receives it */
    struct sending *first;
    struct sending **end;
    uint32_t held;    /**< blocks that are not sent yet */
    int64_t send_end; /**< until when the rank must have received what is under way, or closed a pair that has failed */
    uint64_t elements, bytes; /**< sent */
    struct failure failure;   /**< why the pair has failed; status SUPPLY_OK: it has not */
};

/*
 * One pair of a feeder, from the rank's request to open it to its end: receives blocks from Spark by supply.h, sends
 * them as they lie in the mapped file, and releases them when they are sent.
 */

static supply_status_t outlet_receive_request(struct outlet *outlet, struct failure *failure) {
    return outlet->transport->receive(outlet->transport->context, outlet->rank, outlet->tag + TAG_REQUEST,
                                      &outlet->request, sizeof outlet->request, &outlet->receiving, failure);
}

/* The pair of these options. Begins to receive the rank's requests. SUPPLY_OK, or a failure. */
static supply_status_t outlet_init(struct outlet *outlet, const struct transport *transport,
                                   const struct processes *processes, uint32_t pair, const supply_options_t *options,
                                   struct failure *failure) {
    *outlet = (struct outlet){.transport = transport,
                              .pair = pair,
                              .rank = remote_rank_of(processes, pair),
                              .tag = remote_tag(processes, pair),
                              .options = *options,
                              .receiving = NO_OPERATION};
    outlet->end = &outlet->first;
    outlet->options.rank = (int)pair;
    outlet->options.local_rank = remote_local_rank(processes, pair);
    /* The feeder's own, until the rank says with which one the pair is opened. It may close without that. */
    TRY(supply__options_timeout(options, &outlet->options.timeout, failure));
    return outlet_receive_request(outlet, failure);
}

/* The notice with what Spark says in the header. */
static struct notice_message outlet_notice_of(const struct outlet *outlet, enum notice_kind kind) {
    struct notice_message notice = {.kind = kind};
    const struct mapped_file_header *header = outlet->inspected.header;
    if (outlet->supply == NULL || header == NULL) return notice;
    supply_counts_t counts;
    notice.plan = __atomic_load_n(&header->plan, __ATOMIC_ACQUIRE);
    notice.counts_known = supply_counts(outlet->supply, &counts) == SUPPLY_OK;
    notice.epoch_elements = counts.epoch_elements;
    notice.epoch_steps = counts.epoch_steps;
    notice.exchange = __atomic_load_n(&header->exchange, __ATOMIC_ACQUIRE);
    notice.exchange_seed = header->exchange_seed;
    notice.exchange_fraction = header->exchange_fraction;
    return notice;
}

static supply_status_t outlet_send_notice(struct outlet *outlet, const struct notice_message *notice, const void *tail,
                                          const supply_block_t *block, struct failure *failure) {
    struct sending *sending = malloc(sizeof *sending + notice->tail_bytes);
    if (sending == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    *sending = (struct sending){.notice = *notice, .notice_operation = NO_OPERATION, .block_operation = NO_OPERATION};
    if (tail != NULL) memcpy(remote_tail(&sending->notice), tail, notice->tail_bytes);
    *outlet->end = sending;
    outlet->end = &sending->next;
    const struct transport *transport = outlet->transport;
    const supply_status_t status =
        transport->send(transport->context, outlet->rank, outlet->tag + TAG_NOTICE, &sending->notice,
                        sizeof sending->notice + notice->tail_bytes, &sending->notice_operation, failure);
    if (status != SUPPLY_OK || block == NULL) return status;
    sending->block = *block;
    outlet->held++;
    return transport->send(transport->context, outlet->rank, outlet->tag + TAG_BLOCK, block->address, block->bytes,
                           &sending->block_operation, failure);
}

static struct failure outlet_failure_of(const struct outlet *outlet, supply_status_t status) {
    struct failure failure = {.status = status, .error = supply_error_errno(outlet->supply)};
    supply__copy_line(failure.text, sizeof failure.text, supply_error(outlet->supply), sizeof failure.text);
    return failure;
}

static supply_status_t outlet_send_failure(struct outlet *outlet, const struct failure *of_pair,
                                           struct failure *failure) {
    struct notice_message notice = outlet_notice_of(outlet, NOTICE_FAILURE);
    notice.status = of_pair->status;
    notice.error = of_pair->error;
    notice.tail_bytes = (uint32_t)strlen(of_pair->text);
    return outlet_send_notice(outlet, &notice, of_pair->text, NULL, failure);
}

/* Until then the rank must receive what is under way, or close a pair that has failed. */
static void outlet_begin_wait(struct outlet *outlet) {
    outlet->send_end = supply__clock_after(FILLER_LIMIT_FACTOR * outlet->options.timeout);
}

/* The pair has failed. The rank learns why, and closes it. */
static supply_status_t outlet_fail(struct outlet *outlet, const struct failure *of_pair, struct failure *failure) {
    outlet->failure = *of_pair;
    outlet->state = OUTLET_WAITS_FOR_CLOSE;
    outlet_begin_wait(outlet);
    return outlet_send_failure(outlet, of_pair, failure);
}

static supply_status_t outlet_fail_by_status(struct outlet *outlet, supply_status_t status, struct failure *failure) {
    const struct failure of_pair = outlet_failure_of(outlet, status);
    return outlet_fail(outlet, &of_pair, failure);
}

static supply_status_t outlet_open_pair(struct outlet *outlet, struct failure *failure) {
    supply_options_t *options = &outlet->options;
    options->timeout = outlet->request.timeout;
    options->exchange = outlet->request.exchange;
    options->position = outlet->request.has_position ? &outlet->request.position : NULL;
    const supply_status_t status = supply_open(&outlet->supply, options);
    if (status != SUPPLY_OK) return outlet_fail_by_status(outlet, status, failure);
    supply__filler_inspect(outlet->supply, &outlet->inspected);
    outlet->state = OUTLET_SUPPLIES;
    struct notice_message notice = outlet_notice_of(outlet, NOTICE_OPENED);
    notice.block_bytes = outlet->inspected.slot_bytes;
    notice.block_count = outlet->inspected.slots;
    return outlet_send_notice(outlet, &notice, NULL, NULL, failure);
}

static supply_status_t outlet_begin_close(struct outlet *outlet) {
    if (outlet->request.kind == REMOTE_STOP) supply__filler_stop(outlet->supply, outlet->request.text);
    outlet->state = OUTLET_CLOSES;
    outlet_begin_wait(outlet);
    return SUPPLY_OK;
}

static supply_status_t outlet_take_request(struct outlet *outlet, struct failure *failure) {
    switch (outlet->request.kind) {
        case REMOTE_OPEN:
            return outlet->state == OUTLET_WAITS_FOR_OPEN ? outlet_open_pair(outlet, failure) : SUPPLY_OK;
        case REMOTE_NEXT_EPOCH:
            if (outlet->state == OUTLET_WAITS_FOR_EPOCH) outlet->state = OUTLET_SUPPLIES;
            return SUPPLY_OK;
        case REMOTE_CLOSE:
        case REMOTE_STOP:
            return outlet_begin_close(outlet);
        default:
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "pair %u: an unknown request %u of process %d",
                                outlet->pair, outlet->request.kind, outlet->rank);
    }
}

static bool outlet_is_last_request(const struct outlet *outlet) {
    return outlet->request.kind == REMOTE_CLOSE || outlet->request.kind == REMOTE_STOP;
}

static supply_status_t outlet_take_requests(struct outlet *outlet, bool *busy, struct failure *failure) {
    if (outlet->receiving == NO_OPERATION) return SUPPLY_OK;
    supply_status_t status = supply__transport_test(outlet->transport, &outlet->receiving, failure);
    if (status != SUPPLY_OK) return status < 0 ? status : SUPPLY_OK;
    *busy = true;
    outlet->request.text[sizeof outlet->request.text - 1] = '\0';
    TRY(outlet_take_request(outlet, failure));
    return !outlet_is_last_request(outlet) ? outlet_receive_request(outlet, failure) : SUPPLY_OK;
}

/* Releases the blocks that have been sent. In order: the pair gets its slots back in order, too. */
static supply_status_t outlet_finish_sendings(struct outlet *outlet, bool *busy, struct failure *failure) {
    while (outlet->first != NULL) {
        struct sending *sending = outlet->first;
        supply_status_t status = supply__transport_test(outlet->transport, &sending->notice_operation, failure);
        if (status == SUPPLY_OK) status = supply__transport_test(outlet->transport, &sending->block_operation, failure);
        if (status != SUPPLY_OK) return status < 0 ? status : SUPPLY_OK;
        if (sending->block.element_count > 0) {
            supply_release(outlet->supply, &sending->block);
            outlet->elements += sending->block.element_count;
            outlet->bytes += sending->block.bytes;
            outlet->held--;
        }
        outlet->first = sending->next;
        if (outlet->first == NULL) outlet->end = &outlet->first;
        free(sending);
        *busy = true;
    }
    return SUPPLY_OK;
}

/* Values in place lie in files of this node. */
static bool outlet_has_views(const struct schema *schema) {
    for (uint32_t i = 0; i < schema->count; i++)
        if (strcmp(schema->entries[i].format, "vz") == 0) return true;
    return false;
}

static supply_status_t outlet_send_schema(struct outlet *outlet, struct failure *failure) {
    const struct schema *schema;
    struct failure of_pair;
    if (supply__filler_schema(outlet->supply, &schema, &of_pair) != SUPPLY_OK)
        return outlet_fail(outlet, &of_pair, failure);
    if (schema == NULL) return SUPPLY_OK;
    outlet->has_sent_schema = true;
    if (outlet_has_views(schema)) {
        supply__fail(
            &of_pair, SUPPLY_ERROR_ARGUMENT,
            "%s: Spark supplies values in place, which a feeder cannot send to another node: start the Supplier "
            "without --in-place",
            outlet->inspected.name);
        return outlet_fail(outlet, &of_pair, failure);
    }
    struct notice_message notice = outlet_notice_of(outlet, NOTICE_SCHEMA);
    notice.schema_columns = schema->count;
    notice.tail_bytes = (uint32_t)supply__schema_bytes(schema);
    return outlet_send_notice(outlet, &notice, schema->entries, NULL, failure);
}

static supply_status_t outlet_send_place(struct outlet *outlet, enum notice_kind kind, const supply_block_t *block,
                                         struct failure *failure) {
    struct notice_message notice = outlet_notice_of(outlet, kind);
    const bool is_block = kind == NOTICE_BLOCK;
    notice.filled = (struct filled){.epoch = block->epoch,
                                    .partition = block->partition,
                                    .first_element = block->first_element,
                                    .element_count = is_block ? block->element_count : 0,
                                    .bytes = is_block ? block->bytes : 0};
    return outlet_send_notice(outlet, &notice, NULL, is_block ? block : NULL, failure);
}

static bool outlet_knows_schema(const struct outlet *outlet) {
    return __atomic_load_n(&outlet->inspected.header->schema_columns, __ATOMIC_ACQUIRE) != 0;
}

/* A slow Spark: the pair may still supply something. */
static supply_status_t outlet_report_timeout(struct outlet *outlet, struct failure *failure) {
    const struct failure timeout = outlet_failure_of(outlet, SUPPLY_ERROR_TIMEOUT);
    return outlet_send_failure(outlet, &timeout, failure);
}

/* What the pair has next. SUPPLY_AGAIN: nothing. */
static supply_status_t outlet_supply_once(struct outlet *outlet, struct failure *failure) {
    supply_block_t block = {0};
    if (!outlet->has_sent_schema && outlet_knows_schema(outlet)) return outlet_send_schema(outlet, failure);
    if (outlet->held == outlet->inspected.slots) return SUPPLY_AGAIN;
    const supply_status_t status = supply_try_next(outlet->supply, &block);
    /* The task may have attached since the schema was looked for. A pair without elements needs it, too (A6). */
    if (status >= 0 && !outlet->has_sent_schema && outlet_knows_schema(outlet) &&
        outlet_send_schema(outlet, failure) != SUPPLY_OK)
        return failure->status;
    if (outlet->state != OUTLET_SUPPLIES) return SUPPLY_AGAIN;
    switch (status) {
        case SUPPLY_OK:
            return outlet_send_place(outlet, NOTICE_BLOCK, &block, failure);
        case SUPPLY_END_OF_EPOCH:
            outlet->state = OUTLET_WAITS_FOR_EPOCH;
            return outlet_send_place(outlet, NOTICE_END_OF_EPOCH, &block, failure);
        case SUPPLY_END_OF_DATA:
            outlet->state = OUTLET_WAITS_FOR_CLOSE;
            return outlet_send_place(outlet, NOTICE_END_OF_DATA, &block, failure);
        case SUPPLY_ERROR_TIMEOUT:
            return outlet_report_timeout(outlet, failure);
        default:
            return status < 0 ? outlet_fail_by_status(outlet, status, failure) : SUPPLY_AGAIN;
    }
}

static supply_status_t outlet_supply_blocks(struct outlet *outlet, bool *busy, struct failure *failure) {
    supply_status_t status = SUPPLY_OK;
    while (status == SUPPLY_OK && outlet->state == OUTLET_SUPPLIES) {
        status = outlet_supply_once(outlet, failure);
        *busy |= status == SUPPLY_OK;
    }
    return status < 0 ? status : SUPPLY_OK;
}

/* The handle and its memory stay: MPI may still read them. The end of the process closes the pair. */
static supply_status_t outlet_abandon(struct outlet *outlet) {
    const struct failure *before = &outlet->failure;
    outlet->state = OUTLET_ABANDONED;
    supply__fail(&outlet->failure, SUPPLY_ERROR_TIMEOUT,
                 "%s%sprocess %d of the communicator %s: has it died, or does it no longer call MPI?", before->text,
                 before->status != SUPPLY_OK ? "; " : "", outlet->rank,
                 outlet_is_last_request(outlet) ? "closed the pair, and does not receive what was under way"
                                                : "does not close the pair");
    return SUPPLY_OK;
}

/* The rank may be busy for any time as long as Spark lives. */
static supply_status_t outlet_check_spark(struct outlet *outlet, struct failure *failure) {
    const supply_status_t status = supply__filler_check_running(outlet->supply);
    return status == SUPPLY_OK ? SUPPLY_OK : outlet_fail_by_status(outlet, status, failure);
}

/* Closes the pair when nothing of its ring is on its way any more. */
static supply_status_t outlet_close_pair(struct outlet *outlet, bool *busy, struct failure *failure) {
    supply_status_t status;
    if (outlet->request.kind == REMOTE_STOP && outlet->failure.status != SUPPLY_ERROR_SPARK)
        status = supply_abort(outlet->supply, outlet->request.text);
    else
        status = supply_close_within(outlet->supply, 0, NULL);
    if (status > SUPPLY_OK) return SUPPLY_OK;
    outlet->supply = NULL;
    if (status != SUPPLY_OK && outlet->failure.status == SUPPLY_OK)
        supply__fail(&outlet->failure, status, "the pair was not closed well: %s", supply_status_name(status));
    outlet->state = OUTLET_SENDS_CLOSED;
    outlet_begin_wait(outlet);
    *busy = true;
    struct notice_message notice = outlet_notice_of(outlet, NOTICE_CLOSED);
    notice.status = status;
    return outlet_send_notice(outlet, &notice, NULL, NULL, failure);
}

/* Whether something that only the rank can end must end by send_end. */
static bool outlet_must_end(const struct outlet *outlet) {
    if (outlet->state == OUTLET_WAITS_FOR_CLOSE) return outlet->failure.status != SUPPLY_OK;
    return outlet->state > OUTLET_WAITS_FOR_CLOSE && outlet->first != NULL;
}

/* Does what it can without waiting. *busy is set to true if that was something. SUPPLY_OK, or a failure of the
 * transport. */
static supply_status_t outlet_advance(struct outlet *outlet, bool *busy, struct failure *failure) {
    if (outlet->state == OUTLET_ABANDONED) return SUPPLY_OK;
    TRY(outlet_take_requests(outlet, busy, failure));
    TRY(outlet_finish_sendings(outlet, busy, failure));
    if (outlet_must_end(outlet)) return supply__clock_now() < outlet->send_end ? SUPPLY_OK : outlet_abandon(outlet);
    if (outlet->state == OUTLET_SUPPLIES && outlet->held < outlet->inspected.slots)
        return outlet_supply_blocks(outlet, busy, failure);
    if (outlet->state == OUTLET_CLOSES) return outlet_close_pair(outlet, busy, failure);
    if (outlet->state == OUTLET_SENDS_CLOSED) outlet->state = OUTLET_CLOSED;
    const bool is_open = outlet->state > OUTLET_WAITS_FOR_OPEN && outlet->state < OUTLET_CLOSES;
    return is_open ? outlet_check_spark(outlet, failure) : SUPPLY_OK;
}

/* A failure of the pair, or why its rank stopped early. */
static void feeder_report(const struct outlet *outlet, void (*log)(const char *line)) {
    char line[sizeof outlet->failure.text + 64];
    const bool has_failed = outlet->failure.status != SUPPLY_OK;
    if (!has_failed && outlet->request.kind != REMOTE_STOP) return;
    snprintf(line, sizeof line, "pair %u: %s%s", outlet->pair,
             has_failed ? "" : "its rank stopped early: ", has_failed ? outlet->failure.text : outlet->request.text);
    log(line);
}

static void feeder_sum_up(const struct outlet *outlets, uint32_t count, void (*log)(const char *line),
                          struct fed *fed) {
    *fed = (struct fed){0};
    for (uint32_t i = 0; i < count; i++) {
        fed->elements += outlets[i].elements;
        fed->bytes += outlets[i].bytes;
        fed->failed += outlets[i].failure.status != SUPPLY_OK;
        if (log != NULL) feeder_report(&outlets[i], log);
    }
}

static bool outlet_is_over(const struct outlet *outlet) {
    return outlet->state == OUTLET_CLOSED || outlet->state == OUTLET_ABANDONED;
}

/* A rank that does not receive does not end the pairs of others. */
static supply_status_t feeder_check_abandoned(const struct outlet *outlets, uint32_t count, struct failure *failure) {
    for (uint32_t i = 0; i < count; i++)
        if (outlets[i].state == OUTLET_ABANDONED)
            return supply__fail(failure, SUPPLY_ERROR_TIMEOUT, "pair %u: %s", outlets[i].pair, outlets[i].failure.text);
    return SUPPLY_OK;
}

/* Until all pairs are over. */
static supply_status_t feeder_run(struct outlet *outlets, uint32_t count, const supply_options_t *options,
                                  struct failure *failure) {
    struct wait wait =
        supply__wait_begin((struct wait_limit){INFINITY, {options->interrupted, options->interrupted_context}});
    for (;;) {
        bool busy = false, is_open = false;
        for (uint32_t i = 0; i < count; i++) {
            TRY(outlet_advance(&outlets[i], &busy, failure));
            is_open |= !outlet_is_over(&outlets[i]);
        }
        if (!is_open) return feeder_check_abandoned(outlets, count, failure);
        if (busy) supply__wait_progressed(&wait);
        if (busy ? supply__is_interrupted(&wait.interruption) : supply__wait_more(&wait) == SUPPLY_INTERRUPTED)
            return SUPPLY_INTERRUPTED;
    }
}

supply_status_t supply__feed_over(const struct transport *transport, const struct processes *processes,
                                  const supply_options_t *options, void (*log)(const char *line), struct fed *fed,
                                  struct failure *failure) {
    const struct pair_range pairs = remote_own_pairs(processes);
    struct outlet *outlets = calloc(pairs.count, sizeof *outlets);
    if (outlets == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    supply_status_t status = SUPPLY_OK;
    for (uint32_t i = 0; i < pairs.count && status == SUPPLY_OK; i++)
        status = outlet_init(&outlets[i], transport, processes, pairs.first + i, options, failure);
    if (status == SUPPLY_OK) status = feeder_run(outlets, pairs.count, options, failure);
    feeder_sum_up(outlets, pairs.count, log, fed);
    /* Otherwise operations may still use the memory. */
    if (status == SUPPLY_OK) free(outlets);
    return status;
}

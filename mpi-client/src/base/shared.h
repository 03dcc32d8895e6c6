/**
 * Reads of memory that another process may write to meanwhile, on processors that reorder accesses, too.
 *
 * Three things order the accesses of two processes (proto/model/memory.pml has each case):
 *   - A field of the header that is stored last, with release, and read first, with acquire: version, schema_columns,
 *     counts_known, foreign_count, end_seen, published, released, acknowledged.
 *   - A record that goes through a pipe, which the kernel changes under a lock: the texts of failures, wake-ups. A
 *     write that finds the pipe full counts, too.
 *   - Fences around messages of MPI, for memory that ranks share in an exchange (exchange/step_round.c).
 *
 * All other reads are relaxed, or plain where a second read does no harm. Each comes after one of these, or is a hint:
 *   - values, offsets, views and headers of a block: after published (R3)
 *   - schema_bytes and the schema: after schema_columns; epoch_elements, epoch_steps: after counts_known;
 *     entries of foreign files: after foreign_count
 *   - exchange, exchange_fraction, exchange_seed: stored before the schema, read after a notification or schema_columns
 *   - plan: stored before the first block is published, read after it
 *   - task_pid, task_attempt: for messages alone
 *   - attachments: for the time limit alone
 *   - published while a rank polls, task_failure[0] while it works: hints. The pipe is read next
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/** Reads that place once, so what was checked is what is used. The compiler may not read it a second time. */
#define SHARED_READ(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)

/**
 * Copies `count` + 1 offsets to memory that no other process writes to; to: NULL: copies none. *last: the last one.
 * False: they do not begin at 0 or above, or decrease.
 */
static inline bool supply__offsets_copy(const int32_t *offsets, uint64_t count, int32_t *to, uint32_t *last) {
    if (to != NULL) offsets = (const int32_t *)memcpy(to, offsets, (count + 1) * sizeof *to);
    int32_t before = 0;
    bool decreasing = false;
    for (uint64_t i = 0; i <= count; i++) {
        const int32_t offset = offsets[i];
        decreasing |= offset < before;
        before = offset;
    }
    *last = (uint32_t)before;
    return !decreasing;
}

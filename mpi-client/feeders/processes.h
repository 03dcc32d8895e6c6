/** The processes of the communicator, and which pair belongs to which of them. */
#pragma once

#include "transport.h"

/** What each process tells all others. */
struct process {
    uint32_t messages; /**< MESSAGES_VERSION */
    uint32_t is_feeder;
    char node[248]; /**< name of its node */
};

struct processes {
    struct process *list; /**< of `count` processes, in the communicator's order */
    int count;
    int self;
    uint32_t feeders;
    uint32_t ranks;
    uint32_t pairs; /**< the larger of the two */
};

/** Pairs `first` to `first` + `count` - 1. */
struct pair_range {
    uint32_t first;
    uint32_t count;
};

/**
 * Tells all processes what this one is. Collective; waits for the others until the limit. SUPPLY_OK, or _SYSTEM,
 * _TIMEOUT, _MEMORY, _ARGUMENT (processes with another version of the library, or no rank), SUPPLY_INTERRUPTED. Free
 * with remote_processes_free() in any case.
 */
supply_status_t remote_meet(struct processes *processes, const struct transport *transport, bool is_feeder,
                            const char *node, const struct wait_limit *limit, struct failure *failure);

void remote_processes_free(struct processes *processes);

/** The pairs of this process. */
struct pair_range remote_own_pairs(const struct processes *processes);

/** Number of the pair's feeder, and of its rank, in the communicator. */
int remote_feeder_of(const struct processes *processes, uint32_t pair);
int remote_rank_of(const struct processes *processes, uint32_t pair);

/** Number of the pair among those of its node: its line of the node's config files. */
int remote_local_rank(const struct processes *processes, uint32_t pair);

/** The pair's first tag. */
int remote_tag(const struct processes *processes, uint32_t pair);

/** Number of this rank among the ranks. */
int remote_own_rank(const struct processes *processes);

/**
 * Which process feeds which rank: every process computes the same pairs from what all have told each other. Their
 * versions are compared first, and the names of their nodes cut. It runs in the thread that opens.
 */
#include "processes.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

/* The first pair of member `index` of `members`: pair p belongs to member p * members / pairs. */
static uint32_t processes_first_pair(const struct processes *processes, uint32_t members, uint32_t index) {
    return (uint32_t)(((uint64_t)index * processes->pairs + members - 1) / members);
}

static uint32_t processes_members_of(const struct processes *processes, bool feeders) {
    return feeders ? processes->feeders : processes->ranks;
}

static struct pair_range processes_pairs_of(const struct processes *processes, bool feeders, uint32_t index) {
    const uint32_t members = processes_members_of(processes, feeders);
    const uint32_t first = processes_first_pair(processes, members, index);
    return (struct pair_range){.first = first, .count = processes_first_pair(processes, members, index + 1) - first};
}

/* Number of a process among those of its kind. */
static uint32_t processes_index_of(const struct processes *processes, int process) {
    uint32_t index = 0;
    for (int i = 0; i < process; i++) index += processes->list[i].is_feeder == processes->list[process].is_feeder;
    return index;
}

/* The process that has that number among those of its kind. */
static int processes_at(const struct processes *processes, bool feeders, uint32_t index) {
    int process = 0;
    for (;; process++)
        if ((processes->list[process].is_feeder != 0) == feeders && index-- == 0) return process;
}

static int processes_owner_of(const struct processes *processes, bool feeders, uint32_t pair) {
    const uint64_t members = processes_members_of(processes, feeders);
    return processes_at(processes, feeders, (uint32_t)(pair * members / processes->pairs));
}

struct pair_range remote_own_pairs(const struct processes *processes) {
    const bool feeders = processes->list[processes->self].is_feeder;
    return processes_pairs_of(processes, feeders, processes_index_of(processes, processes->self));
}

int remote_feeder_of(const struct processes *processes, uint32_t pair) {
    return processes_owner_of(processes, true, pair);
}

int remote_rank_of(const struct processes *processes, uint32_t pair) {
    return processes_owner_of(processes, false, pair);
}

int remote_own_rank(const struct processes *processes) { return (int)processes_index_of(processes, processes->self); }

int remote_tag(const struct processes *processes, uint32_t pair) {
    const uint32_t feeder = processes_index_of(processes, remote_feeder_of(processes, pair));
    return (int)(pair - processes_pairs_of(processes, true, feeder).first) * TAGS_OF_PAIR;
}

int remote_local_rank(const struct processes *processes, uint32_t pair) {
    const int feeder = remote_feeder_of(processes, pair);
    uint32_t index = 0, before = 0;
    for (int i = 0; i < feeder; i++) {
        if (!processes->list[i].is_feeder) continue;
        if (strcmp(processes->list[i].node, processes->list[feeder].node) == 0)
            before += processes_pairs_of(processes, true, index).count;
        index++;
    }
    return (int)(before + pair - processes_pairs_of(processes, true, index).first);
}

static supply_status_t processes_count(struct processes *processes, struct failure *failure) {
    for (int i = 0; i < processes->count; i++) {
        struct process *process = &processes->list[i];
        if (process->messages != MESSAGES_VERSION)
            return supply__fail(
                failure, SUPPLY_ERROR_ARGUMENT,
                "process %d of the communicator has another version of libsupply_remote or supply-feeder: "
                "install the same version on all nodes",
                i);
        process->node[sizeof process->node - 1] = '\0';
        if (process->is_feeder)
            processes->feeders++;
        else
            processes->ranks++;
    }
    if (processes->ranks == 0)
        return supply__fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "all processes of the communicator are feeders: start the training program in the same mpirun, "
            "as mpirun -n 4 supply-feeder : -n 8 ./train");
    processes->pairs = processes->feeders > processes->ranks ? processes->feeders : processes->ranks;
    return SUPPLY_OK;
}

supply_status_t remote_meet(struct processes *processes, const struct transport *transport, bool is_feeder,
                            const char *node, const struct wait_limit *limit, struct failure *failure) {
    *processes = (struct processes){.count = transport->ranks, .self = transport->rank};
    struct process *all = calloc((size_t)transport->ranks + 1, sizeof *all);
    if (all == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    processes->list = all;
    struct process *own = &all[transport->ranks];
    *own = (struct process){.messages = MESSAGES_VERSION, .is_feeder = is_feeder};
    supply__copy_line(own->node, sizeof own->node, node, sizeof own->node);
    int operation;
    supply_status_t status = transport->allgather(transport->context, own, all, sizeof *all, &operation, failure);
    if (status == SUPPLY_OK)
        status = supply__transport_await(transport, &operation, limit, "supply_remote_open()",
                                         "is it another program? Start only the training program and supply-feeder in "
                                         "this mpirun",
                                         failure);
    /* The operation may still use the memory. */
    if (status != SUPPLY_OK) processes->list = NULL;
    return status == SUPPLY_OK ? processes_count(processes, failure) : status;
}

void remote_processes_free(struct processes *processes) {
    free(processes->list);
    *processes = (struct processes){0};
}

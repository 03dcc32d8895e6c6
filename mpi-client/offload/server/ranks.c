/**
 * How the ranks of this server agree. All of it runs in the main thread. Collective functions end on all ranks alike;
 * rank 0 decides which command begins.
 */
#include "ranks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "command_line.h"
#include "memory.h"

bool refuse(char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, SUPPLY_TEXT_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

void ranks_init(struct ranks *ranks) {
    int length;
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks->comm);
    MPI_Comm_rank(ranks->comm, &ranks->rank);
    MPI_Comm_size(ranks->comm, &ranks->count);
    MPI_Get_processor_name(ranks->node, &length);
    MPI_Comm_split_type(ranks->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &ranks->of_node);
}

bool ranks_agree(const struct ranks *ranks, char *text) {
    const bool failed = text[0] != '\0';
    int first = failed ? ranks->rank : ranks->count, failures = failed;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, ranks->comm);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, ranks->comm);
    if (failures == 0) return true;
    if (first == ranks->rank && failures < ranks->count) {
        char own[SUPPLY_TEXT_BYTES];
        memcpy(own, text, sizeof own);
        /* The text is cut, not the number. */
        snprintf(text, SUPPLY_TEXT_BYTES, "rank %d: %.*s", ranks->rank, SUPPLY_TEXT_BYTES - 32, own);
    }
    MPI_Bcast(text, SUPPLY_TEXT_BYTES, MPI_CHAR, first, ranks->comm);
    return false;
}

/* Ranks of one node may be in different control groups. */
static double available_on_node(const struct ranks *ranks) {
    double available = (double)node_memory_available("");
    MPI_Allreduce(MPI_IN_PLACE, &available, 1, MPI_DOUBLE, MPI_MIN, ranks->of_node);
    return available;
}

void check_needed_memory(const struct ranks *ranks, double bytes, const char *what, char *text) {
    double needed;
    MPI_Allreduce(&bytes, &needed, 1, MPI_DOUBLE, MPI_SUM, ranks->of_node);
    if (needed == 0 || needed + (double)NODE_MEMORY_RESERVE <= available_on_node(ranks)) return;
    growing_drop_spare();
    MPI_Barrier(ranks->of_node);
    const double available = available_on_node(ranks);
    if (needed + (double)NODE_MEMORY_RESERVE <= available) return;
    snprintf(text, SUPPLY_TEXT_BYTES,
             "%s needs %.1f GB on node %s, and %.1f GB are free there: use more nodes, or drop other matrices", what,
             needed / 1e9, ranks->node, available / 1e9);
}

/* Tags: to rank 0, and from it. */
enum { HAS_COMMAND = 1, HAS_NO_PROGRAM, DECISION };

/* All ranks get a command at once, and a waiting rank leaves its core to Spark. */
#define PAUSE_SECONDS 50e-6

struct waiting {
    char id[COMMAND_ID_BYTES]; /**< "": the rank has no command */
    int64_t deadline;
};

bool agreement_open(struct agreement *agreement, const struct ranks *ranks, double timeout, char *text) {
    *agreement = (struct agreement){.ranks = ranks, .timeout = timeout};
    MPI_Comm_dup(ranks->comm, &agreement->comm);
    if (ranks->rank == 0) {
        agreement->waiting = calloc((size_t)ranks->count, sizeof *agreement->waiting);
        agreement->nodes = calloc((size_t)ranks->count, MPI_MAX_PROCESSOR_NAME);
        if (agreement->waiting == NULL || agreement->nodes == NULL) snprintf(text, SUPPLY_TEXT_BYTES, "no memory");
    }
    if (!ranks_agree(ranks, text)) return false;
    MPI_Gather(ranks->node, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, agreement->nodes, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0,
               agreement->comm);
    return true;
}

void agreement_close(struct agreement *agreement) {
    free(agreement->waiting);
    free(agreement->nodes);
}

static void copy_id(char *to, const char *id) { snprintf(to, COMMAND_ID_BYTES, "%s", id); }

/* Rank 0 has heard that a rank waits with a command. */
static void agreement_add(struct agreement *agreement, int rank, const char *id) {
    copy_id(agreement->waiting[rank].id, id);
    agreement->waiting[rank].deadline = supply__clock_after(agreement->timeout);
}

static void tell(struct agreement *agreement, int rank, const char *text) {
    struct decision decision;
    copy_id(decision.id, agreement->waiting[rank].id);
    snprintf(decision.text, sizeof decision.text, "%s", text);
    agreement->waiting[rank].id[0] = '\0';
    if (rank == 0)
        agreement->own = decision;
    else
        MPI_Send(&decision, sizeof decision, MPI_BYTE, rank, DECISION, agreement->comm);
}

static void agreement_refuse(struct agreement *agreement, const char *id, const char *text) {
    struct decision *refused = &agreement->refused;
    copy_id(refused->id, id);
    snprintf(refused->text, sizeof refused->text, "%s", text);
    for (int rank = 0; rank < agreement->ranks->count; rank++)
        if (strcmp(agreement->waiting[rank].id, refused->id) == 0) tell(agreement, rank, refused->text);
}

static void agreement_refuse_late(struct agreement *agreement, const char *id) {
    char text[SUPPLY_TEXT_BYTES];
    int missing = 0;
    while (strcmp(agreement->waiting[missing].id, id) == 0) missing++;
    snprintf(
        text, sizeof text,
        "the command did not reach rank %d on node %s within %g s, so no rank has begun it: each node of the ranks "
        "needs an executor with a free task slot",
        missing, agreement->nodes + (size_t)missing * MPI_MAX_PROCESSOR_NAME, agreement->timeout);
    agreement_refuse(agreement, id, text);
}

static void take_messages(struct agreement *agreement) {
    for (;;) {
        int found;
        MPI_Status status;
        char id[COMMAND_ID_BYTES], text[128];
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, agreement->comm, &found, &status);
        if (!found) return;
        MPI_Recv(id, sizeof id, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, agreement->comm, MPI_STATUS_IGNORE);
        if (status.MPI_TAG == HAS_COMMAND) agreement_add(agreement, status.MPI_SOURCE, id);
        if (status.MPI_TAG == HAS_COMMAND || strcmp(agreement->waiting[status.MPI_SOURCE].id, id) != 0) continue;
        snprintf(text, sizeof text, "the program has left rank %d before all ranks had its command", status.MPI_SOURCE);
        agreement_refuse(agreement, id, text);
    }
}

/* The ranks that have the command of rank 0. Refuses others: they cannot begin theirs before it. */
static int count_ready(struct agreement *agreement) {
    struct waiting *waiting = agreement->waiting;
    int ready = 0;
    for (int rank = 0; rank < agreement->ranks->count; rank++) {
        if (waiting[rank].id[0] == '\0') continue;
        if (strcmp(waiting[rank].id, agreement->refused.id) == 0)
            tell(agreement, rank, agreement->refused.text);
        else if (strcmp(waiting[rank].id, waiting[0].id) == 0)
            ready++;
        else if (waiting[0].id[0] != '\0')
            agreement_refuse(agreement, waiting[rank].id,
                             "another program has sent a command at the same time: repeat this one");
    }
    return ready;
}

static void decide(struct agreement *agreement) {
    if (count_ready(agreement) == agreement->ranks->count) {
        for (int rank = 0; rank < agreement->ranks->count; rank++) tell(agreement, rank, "");
        return;
    }
    for (int rank = 0; rank < agreement->ranks->count; rank++) {
        const struct waiting *waiting = &agreement->waiting[rank];
        if (waiting->id[0] != '\0' && supply__clock_now() > waiting->deadline)
            agreement_refuse_late(agreement, waiting->id);
    }
}

void agreement_attend(struct agreement *agreement) {
    take_messages(agreement);
    decide(agreement);
}

static void agreement_report(struct agreement *agreement, int tag, const char *id) {
    char message[COMMAND_ID_BYTES];
    copy_id(message, id);
    if (agreement->ranks->rank > 0)
        MPI_Send(message, sizeof message, MPI_CHAR, 0, tag, agreement->comm);
    else if (tag == HAS_COMMAND)
        agreement_add(agreement, 0, id);
    else if (strcmp(agreement->waiting[0].id, id) == 0)
        agreement_refuse(agreement, id, "the program has left rank 0 before all ranks had its command");
}

static bool is_decided(struct agreement *agreement, struct decision *decision) {
    int found = 0;
    if (agreement->ranks->rank == 0) {
        agreement_attend(agreement);
        *decision = agreement->own;
        agreement->own.id[0] = '\0';
        return decision->id[0] != '\0';
    }
    MPI_Iprobe(0, DECISION, agreement->comm, &found, MPI_STATUS_IGNORE);
    if (found) MPI_Recv(decision, sizeof *decision, MPI_BYTE, 0, DECISION, agreement->comm, MPI_STATUS_IGNORE);
    return found != 0;
}

bool agreement_reach(struct agreement *agreement, const char *id, const struct channel *channel, char *text) {
    struct wait wait =
        supply__wait_begin_slow((struct wait_limit){INFINITY, {.interrupted = interruption_came}}, PAUSE_SECONDS);
    struct decision decision;
    bool has_program = true;
    agreement_report(agreement, HAS_COMMAND, id);
    while (!is_decided(agreement, &decision)) {
        if (supply__wait_more(&wait) != SUPPLY_OK) {
            return refuse(text, "supply-server was asked to end");
        }
        if (has_program && channel_is_closed(channel)) {
            has_program = false;
            agreement_report(agreement, HAS_NO_PROGRAM, id);
        }
    }
    memcpy(text, decision.text, sizeof decision.text);
    return text[0] == '\0';
}

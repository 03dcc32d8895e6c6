/**
 * The ranks of this server, and how they agree: on a failure's text, on the memory that they need, and on the command
 * that they begin. A command may reach only some of them.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "channel.h"
#include "supply.h"

/** Fills in the text of a failure, of SUPPLY_TEXT_BYTES. Returns false. */
__attribute__((format(printf, 2, 3))) bool refuse(char *text, const char *format, ...);

struct ranks {
    MPI_Comm comm;
    MPI_Comm of_node; /**< of the ranks on this node */
    int rank;
    int count;
    char node[MPI_MAX_PROCESSOR_NAME];
};

void ranks_init(struct ranks *ranks);

/**
 * True if `text` is empty on all ranks. Otherwise every rank gets the text of the lowest rank that has one, with that
 * rank's number in front if others have none. Collective. text: SUPPLY_TEXT_BYTES.
 */
bool ranks_agree(const struct ranks *ranks, char *text);

/**
 * Sets text if the ranks of this node need more than it has free. bytes: of this rank. what: who needs it, such as
 * "the matrix". Collective. text: SUPPLY_TEXT_BYTES, "" before.
 */
void check_needed_memory(const struct ranks *ranks, double bytes, const char *what, char *text);

/** The longest id of a command, its zero byte included. */
#define COMMAND_ID_BYTES 64

/** text: why the ranks do not begin the command; "": they begin it. */
struct decision {
    char id[COMMAND_ID_BYTES];
    char text[SUPPLY_TEXT_BYTES];
};

struct agreement {
    const struct ranks *ranks;
    MPI_Comm comm;
    double timeout;
    /* Rank 0 decides. It has: */
    struct waiting *waiting; /**< which command each rank waits with */
    char *nodes;             /**< the node of each rank, MPI_MAX_PROCESSOR_NAME bytes each */
    struct decision own;     /**< id "": not decided yet */
    struct decision refused; /**< the last one, for ranks that get that command later */
};

/**
 * timeout: how long ranks wait for the others, in seconds. text: why this rank cannot take part; "": it can.
 * Collective. False on all ranks: text says why.
 */
bool agreement_open(struct agreement *agreement, const struct ranks *ranks, double timeout, char *text);
void agreement_close(struct agreement *agreement);

/**
 * Waits until all ranks have the command with this id: true on all of them. False: text says why, on each rank that has
 * it. If the program closes the connection of a rank that waits, the command is refused.
 */
bool agreement_reach(struct agreement *agreement, const char *id, const struct channel *channel, char *text);

/** What rank 0 does while it has no command: others may have one. Never waits. */
void agreement_attend(struct agreement *agreement);

/** All ranks begin a command, or none does: a command may reach only some of them. */
#ifndef AGREEMENT_H
#define AGREEMENT_H

#include <mpi.h>
#include <stdbool.h>

#include "channel.h"
#include "ranks.h"

/** The longest id of a command, its zero byte included. */
#define COMMAND_ID_BYTES 64

/** text: why the ranks do not begin the command; "": they begin it. */
struct decision {
    char id[COMMAND_ID_BYTES];
    char text[FAILURE_TEXT_BYTES];
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

#endif

/**
 * The task of a pair whose rank is elsewhere (options.connect): a thread of this process that gets blocks over a
 * connection from the Spark task. To the rank it is a task: it stores into the mapped file, which is memory without a
 * name, and speaks through the pipes (proto/PROTOCOL.md, "A pair over a connection").
 */
#pragma once

#include "files/options.h"
#include "net/connection.h"

struct link;
struct mapped_file;

/**
 * Begins the thread. Its ends of the pipes become the link's, also on failure. mapped: of the pair, with its header
 * filled in; the link maps its memory for itself. SUPPLY_OK, or _MEMORY, _SYSTEM.
 */
supply_status_t supply__link_begin(struct link **link, const struct settings *settings,
                                   const struct mapped_file *mapped, int requests, int notifications,
                                   struct failure *failure);

/** The rank has everything, or writes no result any more: END_OF_DATA may be released. */
void supply__link_finish(struct link *link);

/** The rank writes results: END_OF_DATA is released only after supply__link_finish(), so that the task stays. */
void supply__link_hold_end(struct link *link);

/** What the link does at this moment, or what it has failed to do, for a message of the rank. */
void supply__link_state(struct link *link, char text[SUPPLY_TEXT_BYTES]);

/** The rank fails with that text, as if Spark had, and the thread ends: the program knows that no more will come. */
void supply__link_fail(struct link *link, const char *text);

/** Sends what is in the request pipe, and ends the thread and the connection. Results may still refer to the link. */
void supply__link_close(struct link *link);

/** In a forked child: closes the descriptors. */
void supply__link_abandon(struct link *link);

/** A result that refers to the link, from its beginning to its end. */
struct link_result {
    struct link_result *next;
    char name[LINK_NAME_BYTES_MAX + 1];
};

/** False: another one that is open has this name. */
bool supply__link_add(struct link *link, struct link_result *result);
void supply__link_drop(struct link *link, const struct link_result *result);

/**
 * Sends a result, which Spark's executor keeps, or with reason not NULL why there is none. fd: of its whole file. Waits
 * at most the time limit of the pair for each piece. SUPPLY_OK; SUPPLY_INTERRUPTED: it may be sent again; or _TIMEOUT,
 * _SPARK (the executor cannot keep it, or the task has left).
 */
supply_status_t supply__link_keep(struct link *link, const char *name, int fd, const char *reason,
                                  struct failure *failure);
